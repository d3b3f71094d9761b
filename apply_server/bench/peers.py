"""The peers: transformers' own `generate` on the stock model of the same folder.

The only module here that knows torch and transformers. Must not know our decoding, prompts or
reports. Peers get what a user of transformers gets (stock linear layers, SDPA attention, dynamic
cache), and the stop rule through its own interface.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apply_server.bench.modes import Lookup
from apply_server.bench.runs import Pass, Run, Runner
from apply_server.decode.session import StopRule
from apply_server.errors import ModelUnavailable
from apply_server.target import support

if TYPE_CHECKING:
    from torch import Tensor

_WARM_UP_TOKENS = 16


class Peer:
    """A stock causal LM. `eos` holds the ids that end an answer, as ours do."""

    def __init__(self, model: Any, eos: frozenset[int]) -> None:
        from transformers import GenerationConfig

        self.model = model
        self.eos = eos
        # `generate` fills what we leave open from here, and models are published with sampling
        # temperatures and repetition penalties: the neutral configuration has none.
        model.generation_config = GenerationConfig()

    @classmethod
    def load(cls, folder: Path, device: str, dtype: str, eos: frozenset[int]) -> Peer:
        """A second copy of the folder's weights, in memory of its own: ours are repacked in place.

        `device` and `dtype` as in TransformersTarget.load, but for int8, which transformers
        has not: its peer is the float type that suits the device. Raises ModelUnavailable.
        """
        device = support.resolve_device(device)
        try:
            stock = support.stock_dtype(dtype, device)
            model = support.stock_model(folder, dtype=stock, attn_implementation="sdpa").to(device)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise ModelUnavailable(
                f"Could not load the peers' copy of {folder}: {error}"
            ) from error
        peer = cls(model.eval().requires_grad_(False), eos)
        peer.warm_up()
        return peer

    def runner(self, lookup: Lookup | None) -> Runner:
        """Runs jobs by `generate`, greedily; with prompt lookup where it is given."""
        return lambda job: self.generate(job.prompt, job.limit, job.stop(), lookup)

    def generate(
        self, prompt: Sequence[int], limit: int, stop: StopRule, lookup: Lookup | None
    ) -> Run:
        """At most `limit` tokens after `prompt`, cut where `stop` ends them."""
        import torch

        ids = torch.tensor([list(prompt)], device=self.model.device)
        ending = _Ending(len(prompt), stop)
        clock = _Clock(len(prompt))
        hooks = (
            self.model.register_forward_pre_hook(clock.before, with_kwargs=True),
            self.model.register_forward_hook(clock.after),
        )
        try:
            clock.start()
            tokens = self.model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                generation_config=self._settings(limit, lookup),
                stopping_criteria=[ending],
            )
            total_s = clock.elapsed()
        finally:
            for hook in hooks:
                hook.remove()
        output = tuple(tokens[0, len(prompt) :].tolist())[: ending.length]
        passes = _passes(clock.drafted, ending.lengths, len(output))
        decode_s = total_s - clock.prefill_s
        return Run(
            output, passes, len(prompt), clock.prefill_s, decode_s, ending.length is not None
        )

    def warm_up(self) -> None:
        """Pay for the libraries' first calls before anything is timed."""
        self.generate(range(_WARM_UP_TOKENS), 4, _Never(), None)

    def _settings(self, limit: int, lookup: Lookup | None) -> Any:
        from transformers import GenerationConfig

        eos = sorted(self.eos)
        return GenerationConfig(
            max_new_tokens=limit,
            do_sample=False,
            num_beams=1,
            repetition_penalty=1.0,
            eos_token_id=eos or None,
            pad_token_id=eos[0] if eos else 0,  # unused for one row, but warned about if missing
            prompt_lookup_num_tokens=lookup.k if lookup else None,
            max_matching_ngram_size=lookup.n if lookup else None,
        )


def environment(device: str, dtype: str) -> dict[str, object]:
    """What figures depend on besides the model: number type, device, threads and versions."""
    import torch
    import transformers

    device = support.resolve_device(device)
    return {
        "device": device,
        "peers_dtype": support.stock_dtype(dtype, device),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


@dataclass(slots=True)
class _Ending:
    """Our stop rule as a stopping criterion.

    With prompt lookup a call brings a block of tokens, and the end may be in the middle: `length`
    is then where the output ends, and what follows it is not output. `lengths` has the output's
    length after every pass.
    """

    prompt: int
    stop: StopRule
    length: int | None = None
    lengths: list[int] = field(default_factory=list)

    def __call__(self, input_ids: Tensor, scores: object, **_: object) -> Tensor:
        import torch

        before = self.lengths[-1] if self.lengths else 0
        fresh = input_ids[0, self.prompt + before :].tolist()
        self.lengths.append(before + len(fresh))
        for count, token in enumerate(fresh, start=1):
            if self.length is None and self.stop.ends(token):
                self.length = before + count
        return torch.full((1,), self.length is not None, device=input_ids.device)


@dataclass(slots=True)
class _Clock:
    """Forward hooks: tokens drafted for each pass, and when the first pass, prefill, was over."""

    prompt: int
    started: float = 0.0
    prefill_s: float = 0.0
    drafted: list[int] = field(default_factory=list)

    def start(self) -> None:
        self.started = time.perf_counter()

    def elapsed(self) -> float:
        return time.perf_counter() - self.started

    def before(self, _: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        fed = kwargs["input_ids"].shape[1]
        # Prefill is fed the prompt, every other pass the last token; the rest is drafted.
        self.drafted.append(fed - (1 if self.drafted else self.prompt))

    def after(self, _: object, args: tuple[Any, ...], output: Any) -> None:
        if len(self.drafted) == 1:
            output.logits[0, -1, 0].item()  # an accelerator has finished when this is there
            self.prefill_s = self.elapsed()


class _Never:
    """A stop rule that ends nothing."""

    def ends(self, token: int) -> bool:
        return False


def _passes(drafted: Sequence[int], lengths: Sequence[int], total: int) -> tuple[Pass, ...]:
    """Passes from the output's length after each, tokens past the output's end left out."""
    starts = (0, *lengths)
    return tuple(
        Pass(count, min(after, total) - before)
        for count, before, after in zip(drafted, starts, lengths, strict=False)
    )
