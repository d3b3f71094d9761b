"""Draft heads on disk: safetensors with the model's fingerprint, and Medusa's checkpoints.

Must not know how heads draft or are trained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apply_server.errors import ModelUnavailable
from apply_server.propose.heads import FORM, DraftHeads

if TYPE_CHECKING:
    from torch import Tensor

FINGERPRINT, FORMULA = "model", "formula"


def save_heads(
    path: Path, weights: Tensor, biases: Tensor, facts: Mapping[str, str], fingerprint: str
) -> None:
    """Write heads (shapes as in DraftHeads), with what is known of their training."""
    from safetensors.torch import save_file

    tensors = {}
    for head, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        tensors[f"{head}.0.linear.weight"] = weight.contiguous()
        tensors[f"{head}.0.linear.bias"] = bias.contiguous()
    path.parent.mkdir(parents=True, exist_ok=True)
    made = path.with_suffix(".new")
    save_file(tensors, made, {**facts, FINGERPRINT: fingerprint, FORMULA: FORM})
    made.replace(path)


def head_facts(path: Path) -> dict[str, str]:
    """What was written with the heads. Raises ModelUnavailable where there are none."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            return dict(file.metadata() or {})
    except (OSError, SafetensorError) as error:
        raise ModelUnavailable(f"There are no draft heads in {path}: {error}.") from error


def trained_for(facts: Mapping[str, str], fingerprint: str) -> str | None:
    """For what else heads with these `facts` were trained; None for a model of this fingerprint, or
    where the facts name none.
    """
    if facts.get(FINGERPRINT, fingerprint) != fingerprint:
        return "another model"
    if FINGERPRINT in facts and facts.get(FORMULA) != FORM:
        return "another version of this program"
    return None


def output_rows(folder: Path) -> Any:
    """The output matrix [vocabulary, hidden] of the model in `folder`, its embeddings where the two
    are tied: a slice of its file, read where it is indexed.

    Raises ModelUnavailable where there is none.
    """
    from safetensors import safe_open

    for name in ("lm_head.weight", "model.embed_tokens.weight"):
        for path in sorted(folder.glob("*.safetensors")):
            file: Any = safe_open(path, "pt")
            if name in file.keys():  # noqa: SIM118 (not a dict)
                return file.get_slice(name)
    raise ModelUnavailable(f"The model in {folder} has no output matrix that heads could share.")


def load_heads(
    path: Path,
    fingerprint: str,
    project: Callable[[Tensor], Tensor],
    row: Callable[[int], Tensor],
) -> DraftHeads:
    """The heads for a model of this fingerprint; `project` and `row` as in DraftHeads.

    Also reads Medusa's own checkpoints (one residual layer for each head, and its own output
    matrix), which name no model. Raises ModelUnavailable for heads of another model or shape.
    """
    import torch

    tensors = _tensors(path)
    other = trained_for(head_facts(path), fingerprint) if path.suffix == ".safetensors" else None
    if other is not None:
        raise ModelUnavailable(
            f"The draft heads in {path} were trained for {other}. Train them again: "
            "apply-server heads train."
        )
    names = list(takewhile(lambda k: f"{k}.0.linear.weight" in tensors, count()))
    try:
        if any(f"{k}.1.linear.weight" in tensors for k in names):
            raise RuntimeError("its heads have more than one residual layer")
        weights = torch.stack([tensors[f"{k}.0.linear.weight"] for k in names]).float()
        biases = torch.stack([tensors[f"{k}.0.linear.bias"] for k in names]).float()
        matrices = [tensors[f"{k}.1.weight"].float() for k in names if f"{k}.1.weight" in tensors]
        heads = DraftHeads(weights, biases, project, row, tuple(matrices))
        heads.guesses(weights.new_zeros(weights.shape[1]), 0)
    except (RuntimeError, KeyError) as error:  # torch's for shapes that don't fit
        raise ModelUnavailable(
            f"The draft heads in {path} don't fit this model: {str(error).splitlines()[0]}"
        ) from error
    return heads


def _tensors(path: Path) -> dict[str, Tensor]:
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if path.suffix == ".safetensors":
            return dict(load_file(path))
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except (OSError, SafetensorError, ValueError, RuntimeError) as error:
        raise ModelUnavailable(f"The draft heads in {path} can't be read: {error}.") from error
