"""How tokens are chosen, and the noise that chooses them.

The noise is keyed by seed and position. So the target's draw at a position is a function of its
prefix alone, and speculative decoding draws token for token what plain decoding draws. Must not
know tensors: the numbers here are settings and keys, logits are the target's.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b

from apply_server.errors import InvalidRequest

_FRACTION_BITS = 53


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
        for name, value, sound, needed in (
            ("temperature", self.temperature, 0.0 <= self.temperature <= 100.0, "from 0 to 100"),
            ("top-p", self.top_p, 0.0 < self.top_p <= 1.0, "above 0 and at most 1"),
            ("top-k", self.top_k, self.top_k >= 0, "0 or more"),
            ("seed", self.seed, 0 <= self.seed < 2**63, "from 0 to 2^63 - 1"),
            (
                "repetition penalty",
                self.repetition_penalty,
                0.0 < self.repetition_penalty <= 100.0,
                "above 0 and at most 100",
            ),
        ):
            if not sound:
                raise InvalidRequest(f"The {name} must be {needed}, not {value}.")

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
