"""What a GGUF file's tokenizer loses on its way through transformers, put right.

This module must not know where the tokenizer comes from or where it is saved.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenizers import Tokenizer, decoders, pre_tokenizers

# ggml's names of rules, as llama.cpp's vocabulary code groups them. GPT-2's rule is what
# transformers falls back on, also for the second group, which takes digits out one by one first.
_GPT2 = frozenset({"gpt-2", "jais", "mpt", "olmo", "phi-2", "trillion"})
_SINGLE_DIGITS = frozenset(
    {"codeshell", "command-r", "exaone", "minerva-7b", "refact", "smollm", "starcoder"}
)

# A file names one end token, but chat models also end with the one of their base model: the
# texts that llama.cpp takes for an end of generation wherever they are control tokens.
_END_TEXTS = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<end_of_turn>",
    "</s>",
    "<｜end▁of▁sentence｜>",
)


def follow_pre_tokenizer(tokenizer: Tokenizer, name: str) -> bool:
    """Make `tokenizer` cut text as the rule that the file calls `name`; False if not known.

    Byte-level tokenizers also lose their normalizer, if any: composing characters (NFC) would
    change a file's bytes where the model only copies them.
    """
    if not isinstance(tokenizer.decoder, decoders.ByteLevel):
        return True  # SentencePiece: the vocabulary itself says how text is cut
    if name in _SINGLE_DIGITS:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
            ]
        )
    tokenizer.normalizer = None
    return name in _GPT2 | _SINGLE_DIGITS | _known_to_transformers()


def _known_to_transformers() -> frozenset[str]:
    from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS

    return frozenset(GGUF_PRE_TOKENIZER_SPLITS)


def end_ids(tokenizer: Tokenizer, declared: int | Sequence[int] | None) -> list[int]:
    """Ids that end an answer: the declared ones first, then other control tokens known for it."""
    first = [declared] if isinstance(declared, int) else list(declared or ())
    control = {
        token.content: number
        for number, token in tokenizer.get_added_tokens_decoder().items()
        if token.special
    }
    others = [control[text] for text in _END_TEXTS if text in control]
    return list(dict.fromkeys([*first, *others]))
