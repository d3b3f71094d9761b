"""A tile of a matrix product that is held in registers, in LLVM's own language.

The scheme is that of BLIS (Van Zee and van de Geijn 2015): a few rows times panels of 16 columns,
both read once a step. A vector's lanes are columns, never parts of a sum: each number is summed
step by step in one order, whatever tile it stands in. Numba can't keep an array in registers, hence
the intermediate code. Must not know layers or models.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import literally, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from apply_server.kernels.processor import processor

_PROCESSOR = processor()
LANES = _PROCESSOR.lanes

# Columns that lie side by side in packed weights, and how many such panels a unit of work should
# have.
PANEL, PANELS = 16, 4

FLOAT32, BFLOAT16, FLOAT16, INT8, INT8_SCALED = 0, 1, 2, 3, 4

# Inputs of a step by kind: what a row has of them is always a number of 32 bits. Where bfloat16
# can't be multiplied in pairs, a row's are float32.
INPUTS = (1, 2 if _PROCESSOR.pairs_of_bfloat16 else 1, 1, 4, 4)
NUMBER_BYTES = 4

# Of how many panels a tile of 0, 1, 2, … rows is: as many sums at a time as hide how long one takes
# and fit into registers, with what they are made of. AVX2 has 16 registers, and a panel is two of
# them: six rows and a panel take 12; of bytes, which need one more, five are fastest. AVX-512 has
# 32, and a panel is one: five rows and four panels run at the processor's peak, six at 60% of it.
# Weights come from memory in time by themselves: asking for the next ones ahead made blocks of 128
# up to 8% slower.
_TOGETHER = (0, 4, 4, 4, 4, 4) if LANES == PANEL else (0, 4, 2, 2, 1, 1, 1)
_MOST_ROWS = len(_TOGETHER) - 1
_MOST_INT8_ROWS = _MOST_ROWS if LANES == PANEL else 5

_WORD, _INT, _FLOAT = ir.IntType(64), ir.IntType(32), ir.FloatType()
_FLOATS = ir.VectorType(_FLOAT, LANES)
_HALVES = ir.VectorType(ir.HalfType(), LANES)
_INTS = ir.VectorType(_INT, LANES)
_SHORTS = ir.VectorType(ir.IntType(16), 2 * LANES)
_BYTES = ir.VectorType(ir.IntType(8), 4 * LANES)
_VECTORS = range(0, PANEL, LANES)


class _BFloat16(ir.HalfType):  # type: ignore[misc]
    """LLVM's type, which llvmlite doesn't name."""

    def __str__(self) -> str:
        return "bfloat"


_BFLOATS = ir.VectorType(_BFloat16(), 2 * LANES)


def _load(builder: Any, address: Any, kind: Any, offset: int = 0) -> Any:
    place = builder.add(address, _WORD(offset))
    found = builder.load(builder.inttoptr(place, kind.as_pointer()))
    found.align = 4
    return found


def _float32(builder: Any, address: Any) -> list[Any]:
    return [_load(builder, address, _FLOATS, 4 * at) for at in _VECTORS]


def _words(builder: Any, address: Any) -> list[Any]:
    """Several inputs of each column side by side."""
    return [_load(builder, address, _INTS, 4 * at) for at in _VECTORS]


def _bfloat16(builder: Any, address: Any) -> list[Any]:
    """Column i is the lower half of a 32-bit number and column i + 8 the upper: they are the upper
    halves of float32 numbers, so one load and two operations widen 16 of them.
    """
    pairs = _load(builder, address, _INTS)
    lower = builder.shl(pairs, ir.Constant(_INTS, [16] * LANES))
    upper = builder.and_(pairs, ir.Constant(_INTS, [0xFFFF0000] * LANES))
    return [builder.bitcast(each, _FLOATS) for each in (lower, upper)]


def _float16(builder: Any, address: Any) -> list[Any]:
    halves = [_load(builder, address, _HALVES, 2 * at) for at in _VECTORS]
    return [builder.fpext(each, _FLOATS) for each in halves]


def _call(builder: Any, name: str, result: Any, *given: Any) -> Any:
    """One of LLVM's own functions, which become instructions."""
    signature = ir.FunctionType(result, [each.type for each in given])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature, name), given)


def _fused(builder: Any, number: Any, column: Any, total: Any) -> Any:
    return _call(builder, f"llvm.fma.v{LANES}f32", _FLOATS, number, column, total)


def _two_bfloat16(builder: Any, number: Any, column: Any, total: Any) -> Any:
    given = (builder.bitcast(each, _BFLOATS) for each in (number, column))
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * LANES}"
    return _call(builder, name, _FLOATS, total, *given)


def _four_bytes(builder: Any, number: Any, column: Any, total: Any) -> Any:
    """Unsigned bytes times signed ones, added up in 32 bits."""
    return _call(builder, f"llvm.x86.avx512.vpdpbusd.{32 * LANES}", _INTS, total, number, column)


def _pairs_of_pairs(builder: Any, number: Any, column: Any, total: Any) -> Any:
    """The same, added up in pairs of 16 bits (which saturate, so a weight may have seven) and those
    in pairs of 32.
    """
    ones = ir.Constant(_SHORTS, [1] * 2 * LANES)
    given = (builder.bitcast(each, _BYTES) for each in (number, column))
    pairs = _call(builder, "llvm.x86.avx2.pmadd.ub.sw", _SHORTS, *given)
    return builder.add(total, _call(builder, "llvm.x86.avx2.pmadd.wd", _INTS, pairs, ones))


@dataclass(frozen=True, slots=True)
class _Kind:
    """What one step multiplies: a `number` of a row, which is put in every lane, with the `columns`
    at an address, and how products are added to `sums`. `scaled`: whether these are finished.
    """

    number: Any
    sums: Any
    columns: Callable[[Any, Any], list[Any]]
    add_product: Callable[[Any, Any, Any, Any], Any]
    scaled: bool = False


_add_four = _four_bytes if _PROCESSOR.bytes_exactly else _pairs_of_pairs
_KINDS = {
    FLOAT32: _Kind(_FLOAT, _FLOATS, _float32, _fused),
    BFLOAT16: _Kind(_INT, _FLOATS, _words, _two_bfloat16)
    if _PROCESSOR.pairs_of_bfloat16
    else _Kind(_FLOAT, _FLOATS, _bfloat16, _fused),
    FLOAT16: _Kind(_FLOAT, _FLOATS, _float16, _fused),
    INT8: _Kind(_INT, _INTS, _words, _add_four),
    INT8_SCALED: _Kind(_INT, _INTS, _words, _add_four, scaled=True),
}


def _everywhere(builder: Any, number: Any) -> Any:
    """In every lane."""
    none = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    first = builder.insert_element(none, number, _INT(0))
    return builder.shuffle_vector(first, none, ir.Constant(_INTS, [0] * LANES))


@intrinsic(prefer_literal=True)
def _tile(_typing: Any, kind: Any, carried: Any, rows: Any, panels: Any, place: Any) -> Any:
    """See `multiply`; `kind` and `carried` are constants of the code, and so are `rows` and
    `panels` of each tile that is made, of which this jumps to one.
    """
    options = (_KINDS[kind.literal_value], bool(carried.literal_value))
    shapes = sorted({(r, p) for r, most in enumerate(_TOGETHER) if r for p in (1, most)})

    def emit(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        wanted = builder.add(builder.mul(values[2], _WORD(PANEL)), values[3])
        done = builder.append_basic_block("done")
        jump = builder.switch(wanted, done)
        for shape in shapes:
            block = builder.append_basic_block("tile")
            jump.add_case(_WORD(shape[0] * PANEL + shape[1]), block)
            builder.position_at_end(block)
            _emit_tile(builder, shape, *options, cgutils.unpack_tuple(builder, values[4]))
            builder.branch(done)
        builder.position_at_end(done)
        return _WORD(0)

    return types.int64(kind, carried, types.int64, types.int64, place), emit


def _emit_tile(
    builder: Any, shape: tuple[int, int], kind: _Kind, carried: bool, values: Any
) -> None:
    x, x_row, x_step, w, w_step, w_panel, start, start_row, out, out_row, out_panel = values[:11]
    steps, units, scales = values[11:]
    rows, panels = range(shape[0]), range(shape[1])

    def moved(start: Any, step: Any, count: int) -> Any:
        return builder.add(start, builder.mul(step, _WORD(count)))

    def results(start: Any, row_step: Any) -> list[Any]:
        return [
            builder.add(moved(moved(start, row_step, row), out_panel, panel), _WORD(4 * lane))
            for row in rows
            for panel in panels
            for lane in _VECTORS
        ]

    def given() -> list[Any]:
        return [_load(builder, at, kind.sums) for at in results(start, start_row)]

    zeros = [ir.Constant(kind.sums, [0] * LANES)] * (len(rows) * len(panels) * len(_VECTORS))
    first = given() if carried else zeros
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
    if not carried:
        added = [builder.fadd(*each) for each in zip(given(), added, strict=True)]
    if kind.scaled:
        added = _scaled(builder, added, [moved(units, _WORD(4), row) for row in rows], scales)
    for at, result in zip(results(out, out_row), added, strict=True):
        builder.store(result, builder.inttoptr(at, result.type.as_pointer())).align = 4


def _scaled(builder: Any, sums: Sequence[Any], units: Sequence[Any], scales: Any) -> list[Any]:
    """float32 of int32, in each row's and each column's unit, and what is added to a column."""
    finished = []
    for at, total in enumerate(sums):
        row, vector = divmod(at, len(sums) // len(units))
        panel, part = divmod(vector, len(_VECTORS))
        offset = 4 * (2 * PANEL * panel + LANES * part)
        column, bias = (
            _load(builder, scales, _FLOATS, offset + 4 * PANEL * each) for each in (0, 1)
        )
        unit = _everywhere(builder, _load(builder, units[row], _FLOAT))
        number = builder.fmul(builder.fmul(builder.sitofp(total, _FLOATS), column), unit)
        finished.append(builder.fadd(number, bias))
    return finished


@njit(cache=True)
def multiply(
    kind: int, carried: bool, rows: int, panels: int,
    x: int, x_row: int, x_step: int, w: int, w_step: int, w_panel: int,
    start: int, start_row: int, out: int, out_row: int, out_panel: int, steps: int,
    units: int, scales: int,
) -> None:  # fmt: skip
    """out[row, panel] = start[row, panel] + Σ x[row, step] · w[panel, step] over one or more steps.

    `x`, `start` and `out` are addresses of float32 numbers, `w` of what `kind` says; the others are
    bytes between rows, steps and panels (of 16 columns side by side), and `start`'s panels lie as
    `out`'s. A step is as many inputs as INPUTS says: of BFLOAT16 two, where `x` is as well, and of
    INT8 four, where `x` is unsigned bytes and `start` and `out` int32. Where sums are `carried`
    they begin with `start`, which makes several calls one long sum; else it is added in the end
    (floats only). Of INT8_SCALED, the last call, `out` is float32: sums times a row's number at
    `units` and a column's at `scales`, where each panel has 16 of them and then what is added.
    """
    kind, carried = literally(kind), literally(carried)
    most = _MOST_INT8_ROWS if kind >= INT8 else _MOST_ROWS
    groups = (rows + most - 1) // most
    for group in range(groups):
        row = rows * group // groups
        count = rows * (group + 1) // groups - row
        together, panel = _TOGETHER[count], 0
        while panel < panels:
            at_once = together if panels - panel >= together else 1
            place = (
                x + row * x_row, x_row, x_step,
                w + panel * w_panel, w_step, w_panel,
                start + row * start_row + panel * out_panel, start_row,
                out + row * out_row + panel * out_panel, out_row, out_panel, steps,
                units + 4 * row, scales + 8 * PANEL * panel,
            )  # fmt: skip
            _tile(kind, carried, count, at_once, place)
            panel += at_once
