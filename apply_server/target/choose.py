"""Logits → choices: greedy, sampled, or the verdict on a draft that was itself sampled.

The one place where a target's tokens are chosen, whatever computed the logits. Every row is
processed with the prefix of its own path. Must not know models, caches or who drafts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from apply_server.decode.draft import Draft
from apply_server.decode.sampling import Purpose, Sampling, noise_key, uniform
from apply_server.decode.target import Verdict
from apply_server.target.tree_mask import depths

if TYPE_CHECKING:
    from torch import Tensor

# A nucleus is looked for among so many of the likeliest tokens first: sorting a whole vocabulary
# takes longer than everything else here.
_NUCLEUS = 64

# By how much two choices' logits may differ for the block to decide between them, by number type:
# by each one's precision, with room to spare. What a target is measured to need may only be more
# (TransformersTarget.widen_tolerance).
TOLERANCES = {"float32": 1e-3, "float16": 0.1, "bfloat16": 0.75}


@dataclass(frozen=True, slots=True)
class Asked:
    """What one slot's rows of a pass are chosen by.

    `prefix` holds the sequence's tokens so far, the pending one last; `draft` what follows it.
    """

    prefix: Sequence[int]
    draft: Draft
    sampling: Sampling


def choose(logits: Tensor, asked: Sequence[Asked], hidden: Tensor | None = None) -> list[Verdict]:
    """A verdict for each slot. `logits` [total, vocabulary]: in the order of the slots, a row for
    the pending token and one for each draft node; `hidden` [total, hidden] is what they come from.
    """
    import torch

    rows = [1 + len(each.draft) for each in asked]
    parts = zip(logits.split(rows), asked, strict=True)
    chosen = iter(torch.cat([_choices(part, each) for part, each in parts]).tolist())
    features = [None] * len(rows) if hidden is None else hidden.split(rows)
    return [
        Verdict(tuple(islice(chosen, count)), features=states)
        for count, states in zip(rows, features, strict=True)
    ]


def draft_token(logits: Tensor, asked: Asked) -> tuple[int, Tensor | None]:
    """A draft model's next token after the prefix, from `logits` [1, vocabulary].

    With the distribution that it is drawn from, or None for the likeliest token, a point mass.
    """
    if asked.sampling.greedy:
        return int(penalised(logits, asked).argmax()), None
    q = distribution(logits, asked)
    key = noise_key(asked.sampling.seed, len(asked.prefix), Purpose.DRAFT)
    return int(draw(q, [key])), q[0]


def near_ties(logits: Tensor, asked: Asked, tolerance: float) -> list[bool]:
    """For each row: whether the two likeliest tokens' scores are nearer than `tolerance`.

    Only greedy choices hang on an order; where a draw falls changes as little as the logits do.
    """
    import torch

    if not tolerance or not asked.sampling.greedy:
        return [False] * len(logits)
    best, second = penalised(logits.float(), asked).topk(2).values.unbind(-1)
    close: list[bool] = torch.lt(best - second, tolerance).tolist()
    return close


def distribution(logits: Tensor, asked: Asked) -> Tensor:
    """The probabilities [rows, vocabulary], float32, that plain sampling would draw each row by.

    Repetition penalty, temperature, top-k and top-p, in transformers' order. A row without any
    finite logit is uniform.
    """
    import torch

    sampling = asked.sampling
    scores = penalised(logits.float(), asked)
    most = torch.finfo(torch.float32)
    scores = (scores / sampling.temperature).clamp(most.min, most.max)
    if 0 < sampling.top_k < scores.shape[-1]:
        least = scores.topk(sampling.top_k).values[:, -1:]
        scores = scores.masked_fill(scores < least, most.min)
    probabilities = scores.softmax(-1)
    if sampling.top_p < 1.0:
        probabilities = _nucleus(probabilities, sampling.top_p)
    return probabilities


def penalised(scores: Tensor, asked: Asked) -> Tensor:
    """Scores [rows, vocabulary] after the repetition penalty, each row by its own path's tokens.

    Keskar et al. 2019: positive scores of tokens seen are divided by it, negative ones multiplied.
    """
    import torch

    penalty = asked.sampling.repetition_penalty
    if penalty == 1.0:
        return scores
    seen = seen_tokens(asked, scores.shape, str(scores.device))
    return torch.where(seen, torch.where(scores < 0, scores * penalty, scores / penalty), scores)


def seen_tokens(asked: Asked, shape: Sequence[int], device: str) -> Tensor:
    """Which tokens each row's prefix holds: bool [rows, vocabulary]."""
    import torch

    seen = torch.zeros(tuple(shape), dtype=torch.bool)
    seen[0, list(set(asked.prefix))] = True
    for row, (token, parent) in enumerate(
        zip(asked.draft.tokens, asked.draft.parents, strict=True), start=1
    ):
        seen[row] = seen[1 + parent]
        seen[row, token] = True
    return seen.to(device)


def positions(asked: Asked) -> list[int]:
    """Where in the sequence the token stands that each row chooses."""
    return [len(asked.prefix) + depth for depth in depths(asked.draft)]


def draw(probabilities: Tensor, keys: Sequence[int]) -> Tensor:
    """One token for each row of `probabilities` [rows, vocabulary], by the noise of its key.

    The exponential race: the least of e/p wins, e exponential, with probability p. Two rows whose
    probabilities differ by rounding draw the same token but for a chance as small, and weights
    need no normalising.
    """
    import torch

    noise = {key: _exponential(probabilities, key) for key in set(keys)}
    race: Tensor = probabilities / torch.stack([noise[key] for key in keys])
    return race.argmax(-1)


def residual(p: Tensor, q: Tensor) -> Tensor:
    """max(0, p - q), normalised: what is left of p once a draw from q was refused.

    Leviathan et al. 2023, algorithm 1. Where nothing is left, q was p and nothing is refused but by
    a wrong q: then p itself.
    """
    left = (p - q).clamp(min=0.0)
    total = left.sum()
    return left / total if total > 0.0 else p


def fit(q: Tensor, vocabulary: int) -> Tensor:
    """`q` over `vocabulary` tokens: models with one tokenizer pad their output differently."""
    import torch

    return torch.nn.functional.pad(q, (0, vocabulary - q.shape[-1]))


def accepts(p: float, q: float, u: float) -> bool:
    """min(1, p/q) against a uniform `u` in [0, 1), without dividing: q may be 0."""
    return u * q < p


def _choices(logits: Tensor, asked: Asked) -> Tensor:
    if asked.sampling.greedy:
        return penalised(logits, asked).argmax(-1)
    probabilities = distribution(logits, asked)
    taken = _judge(probabilities, asked)
    seed = asked.sampling.seed
    choices = draw(probabilities, [noise_key(seed, at, Purpose.DRAW) for at in positions(asked)])
    for row, token in taken.items():
        choices[row] = token
    return choices


def _judge(probabilities: Tensor, asked: Asked) -> dict[int, int]:
    """Accept or refuse the nodes that were drawn from a distribution; row → accepted token.

    Siblings are tried in order; each refusal leaves its residual in the row's `probabilities`, from
    which the next sibling, and in the end the correction, is drawn (Miao et al. 2024, SpecInfer).
    """
    import torch

    taken: dict[int, int] = {}
    tried: dict[int, int] = {}
    at = positions(asked)
    for node, (token, parent) in enumerate(
        zip(asked.draft.tokens, asked.draft.parents, strict=True)
    ):
        drawn, row = asked.draft.drawn_from(node), 1 + parent
        if drawn is None or row in taken:
            continue
        nth = tried[row] = tried.get(row, -1) + 1
        q = torch.as_tensor(drawn, dtype=probabilities.dtype, device=probabilities.device)
        q = fit(q, probabilities.shape[-1])
        u = uniform(noise_key(asked.sampling.seed, at[row], Purpose.ACCEPT, nth))
        if accepts(float(probabilities[row, token]), float(q[token]), u):
            taken[row] = token
        else:
            probabilities[row] = residual(probabilities[row], q)
    return taken


def _nucleus(probabilities: Tensor, top_p: float) -> Tensor:
    """The fewest tokens whose probabilities reach `top_p`, normalised; the others get 0."""
    size, vocabulary = _NUCLEUS, probabilities.shape[-1]
    likeliest = probabilities.topk(min(size, vocabulary))
    while size < vocabulary and bool((likeliest.values.sum(-1) < top_p).any()):
        size *= 8
        likeliest = probabilities.topk(min(size, vocabulary))
    before = likeliest.values.cumsum(-1) - likeliest.values
    kept = likeliest.values.masked_fill(before >= top_p, 0.0)
    only = probabilities.new_zeros(probabilities.shape).scatter(-1, likeliest.indices, kept)
    return only / only.sum(-1, keepdim=True)


def _exponential(like: Tensor, key: int) -> Tensor:
    """Exponential noise [vocabulary] by `key`; never 0, so that a probability of 0 never wins."""
    import torch

    generator = torch.Generator(like.device).manual_seed(key)
    noise = like.new_empty(like.shape[-1]).exponential_(generator=generator)
    return noise.clamp_(min=torch.finfo(like.dtype).tiny)
