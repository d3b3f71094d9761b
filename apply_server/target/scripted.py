"""A known answer as the target: no torch, no weights.

It makes drafting measurable offline (how many passes would a perfect model need?) and every layer
above it testable exactly. Must not know where the answer came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from apply_server.decode.draft import ROOT, Draft
from apply_server.decode.sampling import GREEDY, Sampling
from apply_server.decode.target import Verdict

Script = Callable[[Sequence[int]], Sequence[int]]
"""Prompt tokens → the answer's tokens, the end of sequence included where there is one."""


@dataclass(slots=True)
class ScriptedSlot:
    """A position in the answer. `committed` counts the answer's tokens already chosen."""

    answer: Sequence[int]
    committed: int = 0


@dataclass(slots=True)
class ScriptedTarget:
    """Chooses the script's next token wherever a draft follows it, and `off_script` elsewhere.

    A node off the script's path is never reached by `accept`, so what is chosen after it only has
    to be a token; past the script's end the choice is `off_script` as well.
    """

    script: Script
    off_script: int = 0
    passes: int = field(default=0, init=False)

    def open(self, prompt: Sequence[int], room: int, sampling: Sampling = GREEDY) -> ScriptedSlot:
        """Start at the beginning of the answer to `prompt`; there is nothing to sample."""
        return ScriptedSlot(self.script(prompt))

    def cached(self, slot: ScriptedSlot) -> int:
        """Nothing is computed, hence nothing kept."""
        return 0

    def prefill(self, slot: ScriptedSlot) -> Iterator[int]:
        """There is nothing to compute."""
        return iter(())

    def warm(self, prompt: Sequence[int]) -> Iterator[int]:
        """There is nothing to compute ahead."""
        return iter(())

    def verify(self, batch: Sequence[tuple[ScriptedSlot, Draft]]) -> list[Verdict]:
        """One pass for all, counted once."""
        self.passes += 1
        return [self._verdict(slot, draft) for slot, draft in batch]

    def commit(self, slot: ScriptedSlot, path: Sequence[int], pending: int) -> None:
        """Move past the accepted tokens and the pending one."""
        slot.committed += len(path) + 1

    def close(self, slot: ScriptedSlot) -> None:
        """Nothing to free."""

    def _verdict(self, slot: ScriptedSlot, draft: Draft) -> Verdict:
        depth = {ROOT: 0}
        choices = [self._token(slot, 0)]
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            above = depth.get(parent)
            if above is not None and token == self._token(slot, above):
                depth[node] = above + 1
            choices.append(self._token(slot, depth[node]) if node in depth else self.off_script)
        return Verdict(tuple(choices))

    def _token(self, slot: ScriptedSlot, ahead: int) -> int:
        index = slot.committed + ahead
        return slot.answer[index] if index < len(slot.answer) else self.off_script
