"""What the processor can do."""

from __future__ import annotations

from llvmlite import binding


def multiplies_bytes() -> bool:
    """Whether it has the instructions of byte_linear.py, which can't be compiled without."""
    return bool(binding.get_host_cpu_features().get("avx2"))
