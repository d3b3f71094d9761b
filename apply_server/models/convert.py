"""GGUF file → a folder of dense bf16 safetensors, tokenizer and chat template, as a program.

This module must not know where the file came from, where the folder goes, or who started it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from apply_server.models.conversion import NOTES_FILE
from apply_server.models.gguf_header import read_header
from apply_server.models.gguf_tokenizer import end_ids, follow_pre_tokenizer

# Two quantisations of one matrix differ by a few per cent (Q4_K against Q6_K: 7), two matrices
# that were trained apart by more than their own size.
_SAME_MATRIX = 0.15


def convert(gguf: Path, folder: Path) -> None:
    """Write the model in `gguf` into `folder`, which exists, as transformers saves models."""
    notes = []
    tokenizer = _tokenizer(gguf)
    if not follow_pre_tokenizer(tokenizer.backend_tokenizer, read_header(gguf).pre_tokenizer):
        notes.append(
            f"The pre-tokenizer of {gguf.name} is not known here; its text may be cut into other "
            "tokens than the model was trained on, which costs quality."
        )
    tokenizer.save_pretrained(folder)
    model = _dense_model(gguf)
    _tie_equal_embeddings(model)
    model.generation_config.eos_token_id = end_ids(
        tokenizer.backend_tokenizer, model.config.eos_token_id
    )
    model.save_pretrained(folder)
    (folder / NOTES_FILE).write_text(json.dumps({"notes": notes}), "utf-8")


def _tokenizer(gguf: Path) -> Any:
    # Not AutoTokenizer: it picks a class that sets its own rules over those of the file, and reads
    # the whole file again to find which.
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast.from_pretrained(gguf.parent, gguf_file=gguf.name)


def _dense_model(gguf: Path) -> Any:
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    return AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )


def _tie_equal_embeddings(model: Any) -> None:
    """Share one matrix between input and output where the file holds two roundings of it.

    A tied model's file may store the output matrix again, at a higher precision than the input;
    using that one for both is nearer to the original and saves its size in memory.
    """
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    if head is None or model.config.tie_word_embeddings:
        return
    same_shape = head.weight.shape == embedding.weight.shape
    if same_shape and _relative_distance(embedding.weight, head.weight) < _SAME_MATRIX:
        embedding.weight = head.weight
        model.config.tie_word_embeddings = True


def _relative_distance(matrix: Any, reference: Any) -> float:
    """‖matrix − reference‖ / ‖reference‖ over a sample of rows; both (rows, columns)."""
    step = max(1, len(reference) // 4096)
    sample = reference[::step].detach().float()
    distance = (matrix[::step].detach().float() - sample).norm() / sample.norm().clamp_min(1e-12)
    return float(distance)


def main(arguments: list[str]) -> None:
    """Convert the file named first into the folder named second."""
    gguf, folder = map(Path, arguments)
    convert(gguf, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
