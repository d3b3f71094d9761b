"""A draft's parents → positions and attention mask of the block that carries it.

The block is the pending token (row 0) and then the draft's nodes (row 1 + i). Must not know models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apply_server.decode.draft import Draft

if TYPE_CHECKING:
    from torch import Tensor


def depths(draft: Draft) -> list[int]:
    """Each row's distance from the pending token: its position, counted from there.

    Depth and not index: two branches at the same depth stand at the same position in the text.
    """
    below = [0]
    for parent in draft.parents:
        below.append(below[1 + parent] + 1)
    return below


def block_mask(draft: Draft, device: str) -> Tensor:
    """Which rows of the block each of them sees: bool [1 + n, 1 + n], True = sees.

    A row sees itself and its ancestors, and nothing of other branches. What is cached all rows see,
    so that no mask is as long as the file.
    """
    import torch

    rows = 1 + len(draft)
    if draft.is_chain:
        return torch.ones(rows, rows, dtype=torch.bool, device=device).tril()
    sees = torch.eye(rows, dtype=torch.bool)
    for row, parent in enumerate(draft.parents, start=1):
        sees[row] |= sees[1 + parent]
    return sees.to(device)
