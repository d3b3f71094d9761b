"""What every test may use: a byte tokenizer and seeded tiny random models."""

from __future__ import annotations

from typing import Any

import pytest

from apply_server.target.transformers_model import StockNetwork, TransformersTarget

TINY_VOCABULARY = 64
FAMILIES = ("llama", "qwen2")


def tiny_model(family: str, **overrides: Any) -> Any:
    """A random two-layer model with grouped heads, float32, the same at every call."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

    from apply_server.target import attention

    attention.register()
    config_class, model_class = {
        "llama": (LlamaConfig, LlamaForCausalLM),
        "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    }[family]
    settings = {
        "vocab_size": TINY_VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        # Large enough that the greedy choice depends on the whole context.
        "initializer_range": 0.4,
        "attn_implementation": attention.NAME,
    }
    torch.manual_seed(7)
    torch.set_num_threads(1)  # a second thread costs these sizes more than it brings
    return model_class(config_class(**(settings | overrides))).eval()


@pytest.fixture(params=FAMILIES, scope="session")
def tiny_target(request: pytest.FixtureRequest) -> TransformersTarget:
    """A target over a tiny random model of each family."""
    network = StockNetwork(tiny_model(request.param))
    network.tolerance = (
        0.0  # rounding is far below what these models tell apart: passes are counted
    )
    return TransformersTarget(network, context=2048)
