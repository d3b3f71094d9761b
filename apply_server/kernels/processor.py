"""What the processor can do, of what the kernels would use."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import binding
from numba import config


@dataclass(frozen=True, slots=True)
class Processor:
    """`lanes` of 32 bits in a vector.

    `bytes_exactly`: whether it adds products of bytes four at a time in 32 bits (VNNI); without
    that it may still multiply them in 16-bit pairs (`pairs_of_bytes`). `pairs_of_bfloat16`: whether
    it adds products of bfloat16 two at a time in float32.
    """

    lanes: int
    pairs_of_bytes: bool
    bytes_exactly: bool
    pairs_of_bfloat16: bool

    @property
    def multiplies_bytes(self) -> bool:
        """Whether byte_linear.py can be compiled."""
        return self.pairs_of_bytes or self.bytes_exactly


def processor() -> Processor:
    """The one that numba compiles for: this one, unless its variables name another's features."""
    return of_features(_features())


def of_features(features: frozenset[str]) -> Processor:
    """By LLVM's names. Vectors are wide where all that is done with them can be: there are few
    processors with AVX-512 that lack the rest, and int8 is at most half as fast on them for it.
    """
    wide = {"avx512f", "avx512bw", "avx512vl", "avx512bf16", "avx512vnni"} <= features
    return Processor(
        lanes=16 if wide else 8,
        pairs_of_bytes="avx2" in features,
        bytes_exactly="avxvnni" in features or {"avx512vnni", "avx512vl"} <= features,
        pairs_of_bfloat16=wide,
    )


def _features() -> frozenset[str]:
    if config.CPU_FEATURES is not None:
        named = config.CPU_FEATURES.split(",")
        return frozenset(name[1:] for name in named if name.startswith("+"))
    return frozenset(name for name, has in binding.get_host_cpu_features().items() if has)
