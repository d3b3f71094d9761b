"""Which models, devices and number types the target can be exact with.

Exactness rests on rolling a cache back to any earlier length. What can't do that (a recurrent
state, a sliding window, rotary embeddings that change with the length) is refused when it is
loaded, with its class and the reason, because it would corrupt output silently. Must not know
drafts.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from apply_server.decode.draft import Draft
from apply_server.errors import ModelUnavailable, Remedy
from apply_server.target.int8 import has_int8

if TYPE_CHECKING:
    import torch

    from apply_server.target.transformers_model import TransformersTarget

INT8 = "int8"
DTYPES = ("auto", "float32", "bfloat16", "float16", INT8)
_PROBE_TOKENS = 12
_DEFAULT_CONTEXT = 4096


def check_config(config: Any) -> None:
    """Refuse by what the configuration says. Raises ModelUnavailable."""
    reason = _refusal(config)
    if reason:
        raise ModelUnavailable(
            f"The model class {type(config).__name__} can't be used: {reason}, so rejected drafts "
            "could not be undone. Choose a decoder-only model with full attention."
        )


def check_rollback(model: Any, target: TransformersTarget) -> None:
    """Refuse by what the model does: our pass with a rollback against its own plain forward.

    Catches whatever no configuration field tells: attention that bypasses the interface, soft
    caps, positions that the model ignores. Raises ModelUnavailable.
    """
    import torch

    tokens = [3 + i for i in range(_PROBE_TOKENS)]
    slot = target.open(tokens[: _PROBE_TOKENS // 2], _PROBE_TOKENS)
    for _ in target.prefill(slot):
        pass
    target.verify([(slot, Draft.chain([1, 2, 1]))])  # rejected: must leave no trace
    for following in tokens[_PROBE_TOKENS // 2 :]:
        target.verify([(slot, Draft())])
        target.commit(slot, (), following)
    ours = target.logits_after(slot).float()
    plain = plain_logits(model, tokens).float()
    scale = plain.abs().max().item() or 1.0
    worst = (ours - plain).abs().max().item() / scale
    if not worst <= _tolerance(model.dtype, torch):
        raise ModelUnavailable(
            f"The model class {type(model).__name__} can't be used: with its cache rolled back its "
            f"output differs from a plain run (by {worst:.1%} of the largest logit)."
        )


def plain_logits(model: Any, tokens: list[int]) -> torch.Tensor:
    """Logits [vocabulary] after `tokens`, by the model's own attention and without any cache."""
    import torch

    ours = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            ids = torch.tensor([tokens], device=model.device)
            logits: torch.Tensor = model(ids, use_cache=False).logits[0, -1]
    finally:
        model.set_attn_implementation(ours)
    return logits


def stock_model(folder: Path, **options: Any) -> Any:
    """Transformers' own model from a folder, `options` as from_pretrained takes them, without the
    progress bars: what is shown is ours to say. Raises what transformers does.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    return AutoModelForCausalLM.from_pretrained(folder, **options)


def resolve_device(device: str) -> str:
    """ "auto" → CUDA, then MPS, then the CPU. Raises ModelUnavailable for one that isn't there."""
    import torch

    if device != "auto":
        return _checked(device)
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _checked(device: str) -> str:
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch's for a device that isn't there
        raise ModelUnavailable(
            f"The device {device!r} can't be used: {str(error).splitlines()[0]}"
        ) from error
    return device


def resolve_dtype(dtype: str, device: str, *, lean: bool) -> str:
    """ "auto" → int8 where model and processor allow it, else a float.

    `lean`: whether the model can be run by the pass that has int8. Raises ModelUnavailable.
    """
    if dtype not in DTYPES:
        raise ModelUnavailable(f"Unknown number type {dtype!r}. Choose one of {', '.join(DTYPES)}.")
    integers = device == "cpu" and lean
    if dtype == INT8 and not integers:
        raise ModelUnavailable(
            "int8 is for models of the Llama and Qwen2 family on a CPU.",
            remedy=Remedy("dtype", ("auto",), "chooses what works."),
        )
    if dtype != "auto":
        return dtype
    if integers and has_int8():
        return INT8
    return stock_dtype(dtype, device)


def stock_dtype(dtype: str, device: str) -> str:
    """What transformers' own forward runs in where ours runs in `dtype`: it has no int8."""
    if dtype not in ("auto", INT8):
        return dtype
    return "bfloat16" if _native_bfloat16(device) else "float32"


def context_length(config: Any) -> int:
    """The most tokens a sequence may hold."""
    return int(getattr(config, "max_position_embeddings", None) or _DEFAULT_CONTEXT)


def _native_bfloat16(device: str) -> bool:
    import torch

    if device.startswith("cuda"):
        return bool(torch.cuda.is_bf16_supported())
    # Emulated bfloat16 is many times slower than float32: AVX2-only processors are better off
    # with twice the memory.
    return device == "cpu" and bool(torch.cpu._is_avx512_bf16_supported())


def _refusal(config: Any) -> str | None:
    layers = set(getattr(config, "layer_types", None) or ["full_attention"])
    rope = getattr(config, "rope_parameters", None) or {}
    checks = (
        (getattr(config, "is_encoder_decoder", False), "it is an encoder-decoder"),
        (layers - {"full_attention"}, f"it has {', '.join(sorted(layers))} layers"),
        (
            getattr(config, "sliding_window", None) and not hasattr(config, "layer_types"),
            "its attention has a sliding window",
        ),
        (
            rope.get("rope_type") in {"dynamic", "longrope"},
            f"its rotary embedding ({rope.get('rope_type')}) changes with the length",
        ),
    )
    return next((reason for failed, reason in checks if failed), None)


def _tolerance(dtype: object, torch: Any) -> float:
    return 1e-3 if dtype == torch.float32 else 0.1
