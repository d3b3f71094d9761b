"""Memory at an address, as numba's arrays."""

from __future__ import annotations

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
_int_pointer = _pointer_to(types.int32)
_byte_pointer = _pointer_to(types.uint8)


@njit(cache=True)
def floats(address: int, count: int) -> Array:
    """float32 [count]."""
    return carray(_float_pointer(address), (count,))


@njit(cache=True)
def integers(address: int, count: int) -> Array:
    """int32 [count]."""
    return carray(_int_pointer(address), (count,))


@njit(cache=True)
def octets(address: int, count: int) -> Array:
    """uint8 [count]."""
    return carray(_byte_pointer(address), (count,))
