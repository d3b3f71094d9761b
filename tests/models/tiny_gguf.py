"""GGUF files of tiny random models with a trained vocabulary, as llama.cpp writes them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGUFWriter
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TRAINING_TEXT = [
    "def f(x):\n    return x + 12345\n\n\nclass A:\n\tvalue = 100\n",
    "for i in range(100):\n    print(i, 2024, '12 34')\n\n        # 99 bottles\n",
    "let it's we'll = 3.14159;  // 100 200 300\r\n\r\n",
]
_LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
_TOP = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


@dataclass
class Vocabulary:
    """Byte-level BPE over TRAINING_TEXT, the control tokens first."""

    tokens: list[str] = field(default_factory=list)
    merges: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def train(cls) -> Vocabulary:
        """Merges join digits and spaces, so that a wrong splitting rule shows."""
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        trainer = trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=list(CONTROL),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(TRAINING_TEXT, trainer)
        ids = tokenizer.get_vocab()
        merges = json.loads(tokenizer.to_str())["model"]["merges"]
        return cls(sorted(ids, key=ids.__getitem__), [(a, b) for a, b in merges])

    @property
    def ids(self) -> dict[str, int]:
        """Token text to id."""
        return {token: number for number, token in enumerate(self.tokens)}


def tiny_causal_lm(family: str, vocabulary: Vocabulary, **overrides: Any) -> Any:
    """A seeded random two-layer Llama or Qwen2 model."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

    config_class, model_class = {
        "llama": (LlamaConfig, LlamaForCausalLM),
        "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    }[family]
    settings = {
        "vocab_size": len(vocabulary.tokens),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "rope_parameters": {"rope_type": "default", "rope_theta": 54321.0},
        "tie_word_embeddings": True,
    }
    torch.manual_seed(3)
    model = model_class(config_class(**(settings | overrides)))
    for parameter in model.parameters():  # norms and biases too, else any mix-up would be right
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


def write_gguf(
    path: Path,
    model: Any,
    vocabulary: Vocabulary,
    *,
    family: str,
    pre: str,
    output: Any = None,
) -> Path:
    """Write `model`; `output` is stored as an output matrix of its own if given."""
    writer = GGUFWriter(path, family)
    _write_config(writer, model.config)
    _write_tokenizer(writer, vocabulary, pre)
    for name, weight in model.state_dict().items():
        if name != "lm_head.weight":
            array = _as_llama_cpp(name, weight.numpy(), family, model.config)
            writer.add_tensor(gguf_name(name), np.ascontiguousarray(array))
    if output is not None:
        writer.add_tensor("output.weight", output.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_config(writer: GGUFWriter, config: Any) -> None:
    writer.add_name("Tiny")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(config.vocab_size)


def _write_tokenizer(writer: GGUFWriter, vocabulary: Vocabulary, pre: str) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_types([3 if token in CONTROL else 1 for token in vocabulary.tokens])
    writer.add_token_merges([" ".join(pair) for pair in vocabulary.merges])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)


def gguf_name(name: str) -> str:
    """llama.cpp's name of a transformers parameter."""
    module, kind = name.rsplit(".", 1)
    if module in _TOP:
        return f"{_TOP[module]}.{kind}"
    _, _, layer, rest = module.split(".", 3)
    return f"blk.{layer}.{_LAYER[rest]}.{kind}"


def _as_llama_cpp(name: str, array: Any, family: str, config: Any) -> Any:
    """llama.cpp keeps the rotary halves of Llama's query and key interleaved."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    projection = name.split(".")[-2]
    if family != "llama" or projection not in heads:
        return array
    shape = (heads[projection], 2, -1, *array.shape[1:])
    return array.reshape(shape).swapaxes(1, 2).reshape(array.shape)
