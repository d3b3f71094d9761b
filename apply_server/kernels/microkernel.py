"""A tile of a matrix product that is held in registers, in LLVM's own language.

The scheme is that of BLIS (Van Zee and van de Geijn 2015): a few rows times panels of 16 columns,
both read once a step. A vector's lanes are columns, never parts of a sum: each number is summed
step by step in one order, whatever tile it stands in. Numba can't keep an array in registers, hence
the intermediate code. Must not know layers or models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import literally, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

# Columns that lie side by side in packed weights: two vectors; and how many such panels a unit of
# work should have, as one row is multiplied with so many at a time.
PANEL, PANELS = 16, 4
# The sums of six rows and a panel take 12 of AVX2's 16 registers, and what they are made of three;
# of bytes one more, and with five rows a block of 128 takes four fifths of FBGEMM's time.
_MOST_ROWS, _MOST_INT8_ROWS = 6, 5

FLOAT32, BFLOAT16, FLOAT16, INT8 = 0, 1, 2, 3

_LANES = 8
_WORD, _INT, _FLOAT = ir.IntType(64), ir.IntType(32), ir.FloatType()
_FLOATS = ir.VectorType(_FLOAT, _LANES)
_HALVES = ir.VectorType(ir.HalfType(), _LANES)
_INTS = ir.VectorType(_INT, _LANES)
_SHORTS = ir.VectorType(ir.IntType(16), 2 * _LANES)
_BYTES = ir.VectorType(ir.IntType(8), 4 * _LANES)


def _load(builder: Any, address: Any, kind: Any, offset: int = 0) -> Any:
    place = builder.add(address, _WORD(offset))
    found = builder.load(builder.inttoptr(place, kind.as_pointer()))
    found.align = 4
    return found


def _float32(builder: Any, address: Any) -> list[Any]:
    return [_load(builder, address, _FLOATS, 4 * at) for at in (0, _LANES)]


def _bfloat16(builder: Any, address: Any) -> list[Any]:
    """Column i is the lower half of a 32-bit number and column i + 8 the upper: they are the upper
    halves of float32 numbers, so one load and two operations widen 16 of them.
    """
    pairs = _load(builder, address, _INTS)
    lower = builder.shl(pairs, ir.Constant(_INTS, [16] * _LANES))
    upper = builder.and_(pairs, ir.Constant(_INTS, [0xFFFF0000] * _LANES))
    return [builder.bitcast(each, _FLOATS) for each in (lower, upper)]


def _float16(builder: Any, address: Any) -> list[Any]:
    halves = [_load(builder, address, _HALVES, 2 * at) for at in (0, _LANES)]
    return [builder.fpext(each, _FLOATS) for each in halves]


def _int8(builder: Any, address: Any) -> list[Any]:
    """Four inputs of each column side by side."""
    return [_load(builder, address, _BYTES, 4 * at) for at in (0, _LANES)]


def _fused(builder: Any, number: Any, column: Any, total: Any) -> Any:
    signature = ir.FunctionType(_FLOATS, [_FLOATS] * 3)
    fused = cgutils.get_or_insert_function(builder.module, signature, f"llvm.fma.v{_LANES}f32")
    return builder.call(fused, (number, column, total))


def _pairs_of_pairs(builder: Any, number: Any, column: Any, total: Any) -> Any:
    """Unsigned bytes times signed ones, added up in pairs of 16 bits (which saturate, so a weight
    may have seven) and those in pairs of 32.
    """

    def call(name: str, result: Any, left: Any, right: Any) -> Any:
        signature = ir.FunctionType(result, [left.type, right.type])
        function = cgutils.get_or_insert_function(builder.module, signature, name)
        return builder.call(function, (left, right))

    ones = ir.Constant(_SHORTS, [1] * 2 * _LANES)
    given = builder.bitcast(number, _BYTES)
    pairs = call("llvm.x86.avx2.pmadd.ub.sw", _SHORTS, given, column)
    return builder.add(total, call("llvm.x86.avx2.pmadd.wd", _INTS, pairs, ones))


@dataclass(frozen=True, slots=True)
class _Kind:
    """What one step multiplies: a `number` of a row, which is put in every lane, with the `columns`
    at an address, and how products are added to `sums`.
    """

    number: Any
    sums: Any
    columns: Callable[[Any, Any], list[Any]]
    add_product: Callable[[Any, Any, Any, Any], Any]


_KINDS = {
    FLOAT32: _Kind(_FLOAT, _FLOATS, _float32, _fused),
    BFLOAT16: _Kind(_FLOAT, _FLOATS, _bfloat16, _fused),
    FLOAT16: _Kind(_FLOAT, _FLOATS, _float16, _fused),
    INT8: _Kind(_INT, _INTS, _int8, _pairs_of_pairs),
}


def _everywhere(builder: Any, number: Any) -> Any:
    """In every lane."""
    none = ir.Constant(ir.VectorType(number.type, _LANES), ir.Undefined)
    first = builder.insert_element(none, number, _INT(0))
    return builder.shuffle_vector(first, none, ir.Constant(_INTS, [0] * _LANES))


@intrinsic(prefer_literal=True)
def _tile(_typing: Any, rows: Any, panels: Any, kind: Any, carried: Any, place: Any) -> Any:
    """See `multiply`; all but `place` are constants of the code."""
    shape = (rows.literal_value, panels.literal_value)
    options = (_KINDS[kind.literal_value], bool(carried.literal_value))

    def emit(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        _emit_tile(builder, shape, *options, cgutils.unpack_tuple(builder, values[4]))
        return _WORD(0)

    return types.int64(rows, panels, kind, carried, place), emit


def _emit_tile(
    builder: Any, shape: tuple[int, int], kind: _Kind, carried: bool, values: Any
) -> None:
    x, x_row, x_step, w, w_step, w_panel, out, out_row, out_panel, steps = values
    rows, panels = range(shape[0]), range(shape[1])

    def moved(start: Any, step: Any, count: int) -> Any:
        return builder.add(start, builder.mul(step, _WORD(count)))

    results = [
        builder.add(moved(moved(out, out_row, row), out_panel, panel), _WORD(4 * lane))
        for row in rows
        for panel in panels
        for lane in (0, _LANES)
    ]
    zero = ir.Constant(kind.sums, [0] * _LANES)
    first = [_load(builder, at, kind.sums) if carried else zero for at in results]
    before, loop = builder.block, builder.append_basic_block("step")
    after = builder.append_basic_block("sums")
    builder.branch(loop)
    builder.position_at_end(loop)

    def varying(kind: Any, start: Any) -> Any:
        value = builder.phi(kind)
        value.add_incoming(start, before)
        return value

    step, at_x, at_w = (varying(_WORD, start) for start in (_WORD(0), x, w))
    sums = [varying(kind.sums, each) for each in first]
    columns = [each for p in panels for each in kind.columns(builder, moved(at_w, w_panel, p))]
    added = []
    for row in rows:
        number = _everywhere(builder, _load(builder, moved(at_x, x_row, row), kind.number))
        own = sums[row * len(columns) : (row + 1) * len(columns)]
        added += [
            kind.add_product(builder, number, column, each)
            for column, each in zip(columns, own, strict=True)
        ]
    following = [builder.add(step, _WORD(1)), builder.add(at_x, x_step), builder.add(at_w, w_step)]
    for value, new in zip([step, at_x, at_w, *sums], following + added, strict=True):
        value.add_incoming(new, loop)
    builder.cbranch(builder.icmp_signed("<", following[0], steps), loop, after)
    builder.position_at_end(after)
    for at, each in zip(results, added, strict=True):
        result = each if carried else builder.fadd(_load(builder, at, kind.sums), each)
        builder.store(result, builder.inttoptr(at, kind.sums.as_pointer())).align = 4


@njit(cache=True)
def _narrow_tile(count: int, kind: int, carried: bool, place: tuple[int, ...]) -> None:
    """Up to six rows and one panel: a constant for each number of them."""
    kind, carried = literally(kind), literally(carried)
    if count == 1:
        _tile(1, 1, kind, carried, place)
    elif count == 2:
        _tile(2, 1, kind, carried, place)
    elif count == 3:
        _tile(3, 1, kind, carried, place)
    elif count == 4:
        _tile(4, 1, kind, carried, place)
    elif count == 5:
        _tile(5, 1, kind, carried, place)
    else:
        _tile(6, 1, kind, carried, place)


@njit(cache=True)
def multiply(
    kind: int, carried: bool, rows: int, panels: int,
    x: int, x_row: int, x_step: int, w: int, w_step: int, w_panel: int,
    out: int, out_row: int, out_panel: int, steps: int,
) -> None:  # fmt: skip
    """out[row, panel] += Σ x[row, step] · w[panel, step] over one or more steps.

    `x` and `out` are addresses of float32 numbers, `w` of what `kind` says; the others are bytes
    between rows, steps and panels (of 16 columns side by side). Of INT8 a step is four inputs, `x`
    unsigned bytes and `out` int32. Sums begin with what is in `out` where they are `carried`, which
    makes several calls one long sum, or at zero (floats only).
    """
    kind, carried = literally(kind), literally(carried)
    most = _MOST_INT8_ROWS if kind == INT8 else _MOST_ROWS
    groups = (rows + most - 1) // most
    for group in range(groups):
        row = rows * group // groups
        count = rows * (group + 1) // groups - row
        panel = 0
        while panel < panels:
            left = panels - panel
            place = (
                x + row * x_row, x_row, x_step,
                w + panel * w_panel, w_step, w_panel,
                out + row * out_row + panel * out_panel, out_row, out_panel, steps,
            )  # fmt: skip
            # As many sums at a time as hide how long one takes: eight and more vectors.
            if count == 1 and left >= 4:
                _tile(1, 4, kind, carried, place)
                panel += 4
            elif count == 2 and left >= 2:
                _tile(2, 2, kind, carried, place)
                panel += 2
            elif count == 3 and left >= 2:
                _tile(3, 2, kind, carried, place)
                panel += 2
            else:
                _narrow_tile(count, kind, carried, place)
                panel += 1
