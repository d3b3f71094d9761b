"""Draft heads: small layers on the target's last hidden state that guess the tokens after the next.

Head k is h' + SiLU(W·[h, e] + b), read by the target's own output matrix (Cai et al. 2024, Medusa,
with the matrix shared). e is that matrix's row of the token that was chosen from h: which one it
was, h only half tells (Ankner et al. 2024, Hydra). h' is h without its part along e. W starts at
zero, where every head says what the target just said, and with h for h' heads go on saying it where
few answers taught them otherwise: of 257 places in edits that they weren't trained for, in 46%.
Must not know how heads are trained or where the hidden states come from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

from apply_server.decode.draft import NO_DRAFT, ROOT, Draft, Features, Step
from apply_server.decode.speedup import CostTable
from apply_server.propose.tree import DraftTree

if TYPE_CHECKING:
    from torch import Tensor

WIDTH = 4
"""So many of each head's likeliest tokens may become nodes."""

FORM = "h' + SiLU(W[h, e] + b)"
"""What heads compute: weights that were trained for another formula are of no use."""

Guess = tuple[int, float]
"""A token and its probability."""


@dataclass(frozen=True, slots=True)
class DraftHeads:
    """`weights` [heads, hidden, 2 · hidden] and `biases` [heads, hidden]; head k guesses the token
    k places after the one that was chosen from the state.

    Weights [heads, hidden, hidden], as Medusa's, don't look at the chosen token. `project` is the
    target's output matrix, [n, hidden] → [n, vocabulary], and `row` one token's row of it [hidden].
    `matrices` are the heads' own ones [vocabulary, hidden], where they were trained with such.
    """

    weights: Tensor
    biases: Tensor
    project: Callable[[Tensor], Tensor]
    row: Callable[[int], Tensor]
    matrices: tuple[Tensor, ...] = ()

    def __len__(self) -> int:
        return len(self.weights)

    def guesses(self, features: Features, chosen: int, width: int = WIDTH) -> list[list[Guess]]:
        """For each head its `width` likeliest tokens after `chosen`, likeliest first."""
        import torch

        with torch.no_grad():
            state = torch.as_tensor(features)
            inputs = head_inputs(state.float()[None], self.row(chosen).float()[None])
            inputs = inputs[:, : self.weights.shape[-1]]
            given = head_states(inputs, self.weights, self.biases)[:, 0]
            if self.matrices:
                rows = zip(given, self.matrices, strict=True)
                logits = torch.stack([matrix @ row for row, matrix in rows])
            else:
                logits = self.project(given.to(state.dtype))
            likeliest = logits.float().softmax(-1).topk(min(width, logits.shape[-1]))
        pairs = zip(likeliest.indices.tolist(), likeliest.values.tolist(), strict=True)
        return [list(zip(tokens, shares, strict=True)) for tokens, shares in pairs]


def head_inputs(states: Tensor, rows: Tensor) -> Tensor:
    """What heads are given: states and output rows [n, hidden] each → [n, 2 · hidden].

    Rows are brought to a common size, a mean square of 1: they are far smaller than states.
    """
    import torch

    size = rows.square().mean(-1, keepdim=True).sqrt().clamp(min=1e-6)
    return torch.cat([states, rows / size], dim=-1)


def head_states(inputs: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    """What the output matrix is given: [n, hidden or 2 · hidden] → [heads, n, hidden]."""
    import torch

    hidden = weights.shape[1]
    states, chosen = inputs[:, :hidden], inputs[:, hidden:]
    mixed = inputs[None] @ weights.transpose(1, 2) + biases[:, None]  # [heads, n, hidden]
    return _unsaid(states, chosen) + torch.nn.functional.silu(mixed)


def _unsaid(states: Tensor, chosen: Tensor) -> Tensor:
    """States without their part along the chosen tokens' rows; as they are where heads aren't given
    those ([n, 0]).
    """
    if not chosen.shape[1]:
        return states
    along = (states * chosen).mean(-1, keepdim=True)  # the rows' mean square is 1
    return states - along * chosen


class HeadsProposer:
    """Drafts a tree of the heads' guesses, the likeliest paths that are worth their cost.

    Heads claim more than they hold where text is unlike their training; the share of their claims
    that came true so far scales the next ones.
    """

    def __init__(self, heads: DraftHeads, cost: CostTable, longest: int) -> None:
        self._heads = heads
        self._features: Features | None = None
        self._claimed = self._held = 1.0
        self._reaches: list[float] = []
        costs = [cost.cost(k) for k in range(1, longest + 2)]
        self._increments = [more - less for less, more in pairwise(costs)]

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        """A tree of at most `limit` nodes; empty before the target's first pass."""
        if self._features is None or limit < 1:
            return NO_DRAFT
        guesses = self._heads.guesses(self._features, context[-1])
        tree = DraftTree(self._increments[:limit])
        self._reaches = grow(tree, guesses, min(1.0, self._held / self._claimed))
        order = tree.main_first()
        return tree.draft(order, ["heads"] * len(order), max(self._reaches, default=0.0))

    def observe(self, step: Step) -> None:
        """Remember the newest hidden state, and how far the claims held."""
        if len(step.draft):
            self._claimed += sum(self._reaches)
            self._held += len(step.path)
        self._reaches = []
        self._features = step.features[-1] if step.features else None


def grow(tree: DraftTree, guesses: Sequence[Sequence[Guess]], trust: float) -> list[float]:
    """Add the nodes that are worth their cost, likeliest first; returns each one's reach.

    A path's reach is the product of its guesses' probabilities, as the heads don't know of each
    other, each scaled by `trust`.
    """
    reaches: list[float] = []
    heap: list[tuple[float, int, int, int, float]] = []

    def push(parent: int, depth: int, rank: int, before: float) -> None:
        if depth < len(guesses) and rank < len(guesses[depth]):
            reach = before * trust * guesses[depth][rank][1]
            heappush(heap, (-reach, parent, depth, rank, before))

    push(ROOT, 0, 0, 1.0)
    while heap and tree.is_worth(-heap[0][0]):
        reach, parent, depth, rank, before = heappop(heap)
        node = tree.add(parent, guesses[depth][rank][0], -reach)
        reaches.append(-reach)
        push(parent, depth, rank + 1, before)
        push(node, depth + 1, 0, -reach)
    return reaches
