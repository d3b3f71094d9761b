"""Examples → weights of draft heads, resumable, and how good they are on answers held out.

Must not know models or files of examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apply_server.heads.examples import Examples
from apply_server.propose.heads import head_states

if TYPE_CHECKING:
    from torch import Tensor

# Copied text is drafted by copying: heads see enough of it to know the language, no more.
COPIED_WEIGHT = 0.05
# The loss is over the tokens that answers consist of, and some others: a whole vocabulary of
# 150,000 makes a step twenty times as long, for tokens that nearly never come.
LEAST_VOCABULARY = 8192
BATCH = 256
RATE = 1e-3
CHECKPOINT_STEPS = 50
HELD_OUT = 5


@dataclass(frozen=True, slots=True)
class Pairs:
    """`states` [n, hidden], the tokens to guess `goals` [n, heads] (numbers in `vocabulary`, -1 for
    none), and `weights` [n].
    """

    states: Tensor
    goals: Tensor
    weights: Tensor


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` steps, the mean `loss` since the last report, and the weights so far."""

    done: int
    total: int
    loss: float
    weights: Tensor
    biases: Tensor


def split(examples: Sequence[Examples]) -> tuple[list[Examples], list[Examples]]:
    """For training, and every HELD_OUT-th answer for measuring."""
    held = [one for at, one in enumerate(examples) if at % HELD_OUT == HELD_OUT - 1]
    return [one for at, one in enumerate(examples) if at % HELD_OUT != HELD_OUT - 1], held


def vocabulary_of(examples: Sequence[Examples], size: int) -> Tensor:
    """The tokens the loss is over: those of the answers, and evenly spread others. Ascending."""
    import torch

    answers = torch.cat([one.tokens for one in examples])
    others = torch.linspace(0, size - 1, min(size, LEAST_VOCABULARY)).long()
    return torch.cat([answers, others]).unique()


def pairs_of(examples: Sequence[Examples], heads: int, vocabulary: Tensor) -> Pairs:
    """What each state should guess: head k the token k + 1 places after the chosen one."""
    import torch

    goals = []
    for one in examples:
        padded = torch.cat([one.tokens, one.tokens.new_full((heads,), -1)])
        goals.append(torch.stack([padded[k : k + len(one.tokens)] for k in range(1, heads + 1)], 1))
    wanted = torch.cat(goals)
    found = torch.searchsorted(vocabulary, wanted.clamp(min=0)).clamp(max=len(vocabulary) - 1)
    known = (wanted >= 0) & (vocabulary[found] == wanted)
    novel = torch.cat([one.novel for one in examples])
    weights = torch.where(novel, 1.0, COPIED_WEIGHT)
    return Pairs(torch.cat([one.states for one in examples]), found.where(known, -1), weights)


def train(
    pairs: Pairs, matrix: Tensor, heads: int, steps: int, checkpoint: Path
) -> Iterator[Progress]:
    """AdamW on weighted cross-entropy; `matrix` [vocabulary, hidden] stays as it is.

    Goes on from `checkpoint` if it is there, and writes it with each report.
    """
    import torch

    hidden = pairs.states.shape[1]
    weights = torch.zeros(heads, hidden, hidden, requires_grad=True)
    biases = torch.zeros(heads, hidden, requires_grad=True)
    optimiser = torch.optim.AdamW([weights, biases], lr=RATE, weight_decay=0.0)
    done = _resume(checkpoint, weights, biases, optimiser)
    losses: list[float] = []
    while done < steps:
        generator = torch.Generator().manual_seed(done)  # so a resumed run sees the same batches
        batch = torch.multinomial(pairs.weights, BATCH, True, generator=generator)
        loss = _loss(pairs, batch, matrix, weights, biases)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
        done += 1
        if done % CHECKPOINT_STEPS == 0 or done == steps:
            _save(checkpoint, done, weights, biases, optimiser)
            mean = sum(losses) / len(losses)
            losses = []
            yield Progress(done, steps, mean, weights.detach(), biases.detach())


def accuracies(pairs: Pairs, matrix: Tensor, weights: Tensor, biases: Tensor) -> list[float]:
    """For k = 1, 2, …: in what share of the novel places the first k heads were all right."""
    import torch

    novel = pairs.weights == 1.0
    if not bool(novel.any()):
        return [0.0] * len(weights)
    with torch.no_grad():
        given = head_states(pairs.states[novel], weights, biases)
        guessed = (given @ matrix.T).argmax(-1)  # [heads, n]
    right = (pairs.goals[novel] == guessed.T).long().cumprod(1)
    shares: list[float] = right.float().mean(0).tolist()
    return shares


def _loss(pairs: Pairs, batch: Tensor, matrix: Tensor, weights: Tensor, biases: Tensor) -> Tensor:
    import torch

    given = head_states(pairs.states[batch], weights, biases)  # [heads, batch, hidden]
    logits = given @ matrix.T
    goals = pairs.goals[batch].T  # [heads, batch]
    loss: Tensor = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), goals.flatten(), ignore_index=-1
    )
    return loss


def _resume(checkpoint: Path, weights: Tensor, biases: Tensor, optimiser: Any) -> int:
    import torch

    if not checkpoint.is_file():
        return 0
    saved = torch.load(checkpoint, weights_only=True)
    if saved["weights"].shape != weights.shape:
        return 0
    with torch.no_grad():
        weights.copy_(saved["weights"])
        biases.copy_(saved["biases"])
    optimiser.load_state_dict(saved["optimiser"])
    return int(saved["done"])


def _save(checkpoint: Path, done: int, weights: Tensor, biases: Tensor, optimiser: Any) -> None:
    import torch

    made = checkpoint.with_suffix(".new")
    state = {
        "done": done,
        "weights": weights.detach(),
        "biases": biases.detach(),
        "optimiser": optimiser.state_dict(),
    }
    torch.save(state, made)
    made.replace(checkpoint)
