"""Memory at an address: as numba's arrays, and in large pages."""

from __future__ import annotations

import ctypes
import mmap
import sys
from typing import Any

from numba import carray, njit, types
from numba.extending import intrinsic

Array = Any
"""Numba's array of one dimension."""


def _pointer_to(kind: Any) -> Any:
    @intrinsic
    def pointer(_typing: Any, address: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(address), emit

    return pointer


_float_pointer = _pointer_to(types.float32)
_byte_pointer = _pointer_to(types.uint8)


@njit(cache=True)
def floats(address: int, count: int) -> Array:
    """float32 [count]."""
    return carray(_float_pointer(address), (count,))


@njit(cache=True)
def octets(address: int, count: int) -> Array:
    """uint8 [count]."""
    return carray(_byte_pointer(address), (count,))


def ask_for_large_pages(address: int, size: int) -> None:
    """Have the system back memory that isn't used yet by pages of 2 MB, where it has them: weights
    are then read up to a tenth faster by a pass over one token.
    """
    if sys.platform != "linux" or not hasattr(mmap, "MADV_HUGEPAGE"):
        return
    begin, end = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE, address + size
    if begin < end:
        advise = ctypes.CDLL(None).madvise
        advise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), mmap.MADV_HUGEPAGE)
