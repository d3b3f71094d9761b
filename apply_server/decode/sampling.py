"""How tokens are chosen, and the noise that chooses them.

The noise is keyed by seed and position. So the target's draw at a position is a function of its
prefix alone, and speculative decoding draws token for token what plain decoding draws. Must not
know tensors: the numbers here are settings and keys, logits are the target's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from hashlib import blake2b

from apply_server.errors import InvalidRequest

_FRACTION_BITS = 53
# What a setting must be: in code, and as the end of a sentence.
_SOUND: Mapping[str, tuple[Callable[[float], bool], str]] = {
    "temperature": (lambda value: 0.0 <= value <= 100.0, "from 0 to 100"),
    "top_p": (lambda value: 0.0 < value <= 1.0, "above 0 and at most 1"),
    "top_k": (lambda value: value >= 0, "0 or more"),
    "seed": (lambda value: 0 <= value < 2**63, "from 0 to 2^63 - 1"),
    "repetition_penalty": (lambda value: 0.0 < value <= 100.0, "above 0 and at most 100"),
}


def unsound(name: str, value: float) -> str:
    """What the setting of this name must be, as "from 0 to 100"; "" where `value` is that."""
    sound, needed = _SOUND[name]
    return "" if sound(value) else needed


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings with transformers' names, meanings and order of application.

    `temperature` 0 is greedy decoding. `top_p` 1 and `top_k` 0 keep every token, and
    `repetition_penalty` 1 none apart; the penalty counts the prompt as well. Equal settings and
    equal `seed` give equal output. Raises InvalidRequest for values that can't work.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if needed := unsound(name, value):
                raise InvalidRequest(f"The {name.replace('_', '-')} must be {needed}, not {value}.")

    @property
    def greedy(self) -> bool:
        """Whether the likeliest token is taken, without any noise."""
        return self.temperature == 0.0

    @property
    def plain(self) -> bool:
        """Whether logits are taken as they are: greedy, and no penalty."""
        return self.greedy and self.repetition_penalty == 1.0


GREEDY = Sampling()


class Purpose(StrEnum):
    """What noise is used for: uses at one position are independent of each other.

    DRAW is the choice of a token, ACCEPT the test of a draft that was itself drawn, and DRAFT the
    drawing of it.
    """

    DRAW = "draw"
    ACCEPT = "accept"
    DRAFT = "draft"


def noise_key(seed: int, position: int, purpose: Purpose, nth: int = 0) -> int:
    """64 random bits for the `nth` use of this kind at `position`, counted from the prompt's start.

    A hash and not a sum, so that neighbouring seeds and positions have nothing in common.
    """
    packed = struct.pack("<QQQ", seed, position, nth)
    return int.from_bytes(
        blake2b(packed, digest_size=8, person=purpose.encode()).digest(), "little"
    )


def uniform(key: int) -> float:
    """The key as a number in [0, 1)."""
    return (key >> (64 - _FRACTION_BITS)) / float(1 << _FRACTION_BITS)
