"""One slot's keys and values: preallocated, written in place, rolled back without copying.

Must not know models, drafts or masks: a block of rows comes in, and some of them stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


class KVCache:
    """Keys and values of one sequence.

    `length` tokens are committed. `write` puts a block behind them without committing it, so a
    rejected draft costs nothing to forget: the next block overwrites it.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self._layers: dict[int, tuple[Tensor, Tensor]] = {}

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store a block behind the committed tokens; return all keys and values up to its end.

        `keys`, `values`: [kv_heads, n, head_dim]. Returns views [kv_heads, length + n, head_dim].
        """
        stored = self._layers.get(layer)
        if stored is None:
            stored = (self._room(keys), self._room(values))
            self._layers[layer] = stored
        end = self.length + keys.shape[1]
        if end > self.capacity:
            raise AssertionError(f"a block ends at {end}, beyond the {self.capacity} allocated")
        for whole, block in zip(stored, (keys, values), strict=True):
            whole[:, self.length : end] = block
        return stored[0][:, :end], stored[1][:, :end]

    def keep(self, rows: Sequence[int]) -> None:
        """Commit these rows of the last block, in this order, and forget the others.

        `rows` ascends. Rows 0..m-1 are in place already, which is why a draft's main chain is
        numbered first; any other choice moves the stragglers up.
        """
        in_place = next((i for i, row in enumerate(rows) if row != i), len(rows))
        if in_place < len(rows):
            self._move(rows[in_place:], self.length + in_place)
        self.length += len(rows)

    def rewind(self, length: int) -> None:
        """Forget every token after the first `length`."""
        if not 0 <= length <= self.length:
            raise ValueError(f"can't rewind to {length}: {self.length} tokens are cached")
        self.length = length

    @property
    def nbytes(self) -> int:
        """Bytes allocated; 0 before the first block."""
        return sum(whole.nbytes for pair in self._layers.values() for whole in pair)

    def prefix(self, length: int, capacity: int) -> KVCache:
        """A cache of its own with room for `capacity` tokens, the first `length` of these in it."""
        copied = KVCache(capacity)
        copied.length = length
        for layer, pair in self._layers.items():
            keys, values = (copied._room(whole) for whole in pair)
            for new, old in zip((keys, values), pair, strict=True):
                new[:, :length] = old[:, :length]
            copied._layers[layer] = (keys, values)
        return copied

    def _move(self, rows: Sequence[int], to: int) -> None:
        for pair in self._layers.values():
            for whole in pair:
                # Indexing with a list copies first, so overlapping source and target are safe.
                whole[:, to : to + len(rows)] = whole[:, [self.length + row for row in rows]]

    def _room(self, block: Tensor) -> Tensor:
        heads, _, dim = block.shape
        return block.new_empty((heads, self.capacity, dim))
