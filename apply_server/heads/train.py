"""Examples → weights of draft heads, resumable, and how good they are on answers held out.

Must not know models or files of examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apply_server.heads.examples import Examples
from apply_server.propose.heads import FORM, head_inputs, head_states

if TYPE_CHECKING:
    from torch import Tensor

# Guesses compete with the tokens of the answers, and some others: a whole vocabulary of 150,000
# makes measuring twenty times as long, for tokens that nearly never come.
LEAST_VOCABULARY = 8192
# A step's guesses compete with the commonest tokens and each other's: the products with the output
# matrix then take no longer than those of the heads themselves.
COMMONEST = 2048
BATCH = 256
RATE = 5e-4
CHECKPOINT_STEPS = 50
HELD_OUT = 10
MOST_MEASURED = 2000


@dataclass(frozen=True, slots=True)
class Pairs:
    """All rows of some answers, and from which of them heads learn.

    `states` [rows, hidden]; `tokens` [rows], what stands there, and `choices` [rows], what the
    model would have said there, as numbers in a vocabulary (-1 for none); `ends` [rows], the first
    row after a row's answer; `asked` [n], the rows after whose tokens heads are asked.
    """

    states: Tensor
    tokens: Tensor
    choices: Tensor
    ends: Tensor
    asked: Tensor

    def goals(self, rows: Tensor, heads: int) -> Tensor:
        """What heads should guess after the tokens of `rows` [n]: [n, heads], -1 for nothing."""
        import torch

        ahead = rows[:, None] + torch.arange(1, heads + 1)
        inside = ahead < self.ends[rows][:, None]
        return self.choices[ahead.clamp(max=len(self.choices) - 1)].where(inside, -1)


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` steps, the mean `loss` since the last report, and the weights so far."""

    done: int
    total: int
    loss: float
    weights: Tensor
    biases: Tensor


def split(examples: Sequence[Examples]) -> tuple[list[Examples], list[Examples]]:
    """For training, and every HELD_OUT-th answer for measuring, the first among them."""
    held = [one for at, one in enumerate(examples) if at % HELD_OUT == 0]
    return [one for at, one in enumerate(examples) if at % HELD_OUT], held


def vocabulary_of(examples: Sequence[Examples], size: int) -> Tensor:
    """The tokens that count: those of the answers, and evenly spread others. Ascending."""
    import torch

    answers = [tokens for one in examples for tokens in (one.tokens, one.choices)]
    others = torch.linspace(0, size - 1, min(size, LEAST_VOCABULARY)).long()
    found = torch.cat([*answers, others]).unique()
    return found[found >= 0]


def pairs_of(examples: Sequence[Examples], vocabulary: Tensor) -> Pairs:
    """The examples' rows behind one another."""
    import torch

    def numbered(tokens: list[Tensor]) -> Tensor:
        wanted = torch.cat(tokens)
        found = torch.searchsorted(vocabulary, wanted).clamp(max=len(vocabulary) - 1)
        return found.where(vocabulary[found] == wanted, -1)

    lengths = torch.tensor([len(one.tokens) for one in examples])
    return Pairs(
        torch.cat([one.states for one in examples]),
        numbered([one.tokens for one in examples]),
        numbered([one.choices for one in examples]),
        lengths.cumsum(0).repeat_interleave(lengths),
        torch.cat([one.asked for one in examples]).nonzero()[:, 0],
    )


def train(
    pairs: Pairs, matrix: Tensor, heads: int, steps: int, checkpoint: Path
) -> Iterator[Progress]:
    """Adam on cross-entropy, at a rate that falls to nothing; `matrix` [vocabulary, hidden] stays.

    Goes on from `checkpoint` if it is there and of these pairs, and writes it with each report.
    More pairs start anew: with weights that have seen some, no pair could be held out later.
    """
    import torch

    hidden = pairs.states.shape[1]
    weights = torch.zeros(heads, hidden, 2 * hidden, requires_grad=True)
    biases = torch.zeros(heads, hidden, requires_grad=True)
    optimiser = torch.optim.Adam([weights, biases], lr=RATE)
    rows = len(pairs.states)
    done = _resume(checkpoint, rows, weights, biases, optimiser)
    common = commonest(pairs, heads)
    losses: list[float] = []
    while done < steps:
        generator = torch.Generator().manual_seed(done)  # so a resumed run sees the same batches
        batch = pairs.asked[torch.randint(len(pairs.asked), (BATCH,), generator=generator)]
        optimiser.param_groups[0]["lr"] = RATE * (1.0 - done / steps)
        loss = _loss(pairs, batch, matrix, common, (weights, biases))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
        done += 1
        if done % CHECKPOINT_STEPS == 0 or done == steps:
            state = {"of": (FORM, rows), "done": done, "optimiser": optimiser.state_dict()}
            _save(checkpoint, {**state, "weights": weights.detach(), "biases": biases.detach()})
            mean = sum(losses) / len(losses)
            losses = []
            yield Progress(done, steps, mean, weights.detach(), biases.detach())


def commonest(pairs: Pairs, heads: int) -> Tensor:
    """The COMMONEST goals, as numbers in the vocabulary."""
    goals = pairs.goals(pairs.asked, heads)
    counted = goals[goals >= 0].bincount()
    return counted.topk(min(COMMONEST, len(counted))).indices


def accuracies(pairs: Pairs, matrix: Tensor, weights: Tensor, biases: Tensor) -> list[float]:
    """For k = 1, 2, …: in what share of the places where heads are asked the first k of them were
    all right; of evenly spread ones where there are more than MOST_MEASURED.
    """
    import torch

    if not len(pairs.asked):
        return [0.0] * len(weights)
    rows = pairs.asked[:: 1 + len(pairs.asked) // MOST_MEASURED]
    with torch.no_grad():
        given = head_states(_inputs(pairs, rows, matrix), weights, biases)
        guessed = torch.stack([(states @ matrix.T).argmax(-1) for states in given], 1)
    right = (pairs.goals(rows, len(weights)) == guessed).long().cumprod(1)
    shares: list[float] = right.float().mean(0).tolist()
    return shares


def _inputs(pairs: Pairs, rows: Tensor, matrix: Tensor) -> Tensor:
    """See head_inputs."""
    return head_inputs(pairs.states[rows].float(), matrix[pairs.tokens[rows]])


def _loss(
    pairs: Pairs, batch: Tensor, matrix: Tensor, common: Tensor, heads: tuple[Tensor, Tensor]
) -> Tensor:
    import torch

    goals = pairs.goals(batch, len(heads[0])).T.flatten()  # [heads * batch]
    rivals = torch.cat([common, goals[goals >= 0]]).unique()
    given = head_states(_inputs(pairs, batch, matrix), *heads)  # [heads, batch, hidden]
    logits = given.flatten(0, 1) @ matrix[rivals].T
    found = torch.searchsorted(rivals, goals).where(goals >= 0, -1)
    loss: Tensor = torch.nn.functional.cross_entropy(logits, found, ignore_index=-1)
    return loss


def _resume(checkpoint: Path, rows: int, weights: Tensor, biases: Tensor, optimiser: Any) -> int:
    import torch

    if not checkpoint.is_file():
        return 0
    saved = torch.load(checkpoint, weights_only=True)
    if saved["weights"].shape != weights.shape or saved.get("of") != (FORM, rows):
        return 0
    with torch.no_grad():
        weights.copy_(saved["weights"])
        biases.copy_(saved["biases"])
    optimiser.load_state_dict(saved["optimiser"])
    return int(saved["done"])


def _save(path: Path, state: dict[str, Any]) -> None:
    import torch

    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(".new")
    torch.save(state, made)
    made.replace(path)
