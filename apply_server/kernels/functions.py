"""Functions of float32, the same bits for a number wherever it stands in an array.

Must not know what it is used for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_INT = ir.IntType(32)
# Of e^x: beyond it float32 has no number, below it the smallest normal one.
_LARGEST, _SMALLEST = np.float32(88.0), np.float32(-87.0)
_LOG2_E = np.float32(1.44269504088896341)
# ln 2 in two parts: whole multiples of the first are exact in float32 (Cody and Waite 1980).
_LN2, _LN2_REST = np.float32(0.693359375), np.float32(-2.12194440e-4)
_HALF, _ONE = np.float32(0.5), np.float32(1.0)
_NOTHING = np.float32(0.0)
# (e^r - 1 - r) / r², from the highest power down: Cephes' expf (Moshier 1989).
_P5, _P4, _P3 = (
    np.float32(1.9875691500e-4),
    np.float32(1.3981999507e-3),
    np.float32(8.3334519073e-3),
)
_P2, _P1, _P0 = (
    np.float32(4.1665795894e-2),
    np.float32(1.6666665459e-1),
    np.float32(5.0000001201e-1),
)


@intrinsic
def _power_of_two(_typing: Any, whole: Any) -> Any:
    """2^whole, made of its bits, 32 of them: numba's own whole numbers have 64."""

    def emit(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        exponent = builder.add(builder.fptosi(values[0], _INT), _INT(127))
        return builder.bitcast(builder.shl(exponent, _INT(23)), ir.FloatType())

    return types.float32(types.float32), emit


@intrinsic
def larger(_typing: Any, left: Any, right: Any) -> Any:
    """Of two numbers, none of them NaN: numba's own minds those, and loops of it stay scalar."""

    def emit(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        kind = ir.FloatType()
        function = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind, kind]), "llvm.maxnum.f32"
        )
        return builder.call(function, values, fastmath=("nnan", "nsz"))

    return types.float32(types.float32, types.float32), emit


@njit(cache=True, inline="always")
def exponential(x: Any) -> Any:
    """e^x within 2 units in the last place; 0 below -87, and no more than e^88."""
    above = x if x > _SMALLEST else _SMALLEST
    bounded = above if above < _LARGEST else _LARGEST
    whole = np.floor(bounded * _LOG2_E + _HALF)
    rest = bounded - whole * _LN2 - whole * _LN2_REST
    series = ((((_P5 * rest + _P4) * rest + _P3) * rest + _P2) * rest + _P1) * rest + _P0
    result = (series * rest * rest + rest + _ONE) * _power_of_two(whole)
    return result if x > _SMALLEST else _NOTHING
