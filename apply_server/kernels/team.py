"""Kernels run by several threads: torch's own, because a second team would fight it for the cores.

Threads wait for work by spinning. While torch's spin, those of another library stand still, and the
other way round. Must not know what a kernel computes.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from array import array
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from importlib.metadata import version
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import cfunc, config, types
from numba.extending import intrinsic

from apply_server.folders import cache_folder

Team = Callable[[int, int, int], None]
"""Machine code's address, its arguments' and a number of threads: each of them runs it."""

_WORD = ir.IntType(64)


def code_folder(sources: Path, environment: Mapping[str, str]) -> Path:
    """Where compiled code is kept for the very files it was made from: numba itself would notice a
    change in a kernel's own file only.
    """
    digest = hashlib.sha256(version("numba").encode())
    for path in sorted(sources.glob("*.py")):
        digest.update(path.read_bytes())
    return cache_folder(environment) / "kernels" / digest.hexdigest()[:16]


config.CACHE_DIR = str(code_folder(Path(__file__).parent, os.environ))


@intrinsic
def ticket(_typing: Any, counter: Any) -> Any:
    """The next number of those that all threads draw from: each is drawn once."""

    def emit(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        pointer = builder.inttoptr(values[0], _WORD.as_pointer())
        return builder.atomic_rmw("add", pointer, _WORD(1), "monotonic")

    return types.int64(counter), emit


@intrinsic
def word(_typing: Any, arguments: Any, index: Any) -> Any:
    """One of a kernel's arguments, which are 64-bit words at an address."""

    def emit(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        place = builder.add(values[0], builder.mul(values[1], _WORD(8)))
        return builder.load(builder.inttoptr(place, _WORD.as_pointer()))

    return types.int64(arguments, index), emit


@intrinsic
def number(_typing: Any, arguments: Any, index: Any) -> Any:
    """One of a kernel's arguments that is a float, as float32."""

    def emit(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        place = builder.add(values[0], builder.mul(values[1], _WORD(8)))
        double = builder.load(builder.inttoptr(place, ir.DoubleType().as_pointer()))
        return builder.fptrunc(double, ir.FloatType())

    return types.float32(arguments, index), emit


compiled = cfunc(types.void(types.int64), cache=True)
"""Makes machine code of a function of its arguments' address. The first two arguments are a counter
to draw tickets from and how many there are: a unit of work each, done by any thread in any order.
"""


def openmp_team(libraries: Iterable[Path]) -> Team | None:
    """The threads of the OpenMP library that one of these is linked with; None where there is none
    with GNU's entry point.
    """
    for path in libraries:
        try:
            parallel = ctypes.CDLL(str(path)).GOMP_parallel
        except (OSError, AttributeError):
            continue
        parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
        parallel.restype = None
        return lambda code, arguments, threads: parallel(code, arguments, threads, 0)
    return None


def pooled_team() -> Team:
    """Threads of our own, which are slower to wake."""
    workers = ThreadPoolExecutor(os.cpu_count())
    signature = ctypes.CFUNCTYPE(None, ctypes.c_int64)

    def run(code: int, arguments: int, threads: int) -> None:
        function = signature(code)
        others = [workers.submit(function, arguments) for _ in range(threads - 1)]
        function(arguments)
        wait(others)

    return run


def _team() -> Team:
    import torch

    # A symbol is looked up in a library and then in those it is linked with.
    linked = (Path(torch.__file__).parent / "lib").glob("*torch_cpu.*")
    return openmp_team(linked) or pooled_team()


_TEAM = _team()


class Kernel:
    """What `compiled` made, run by the team."""

    def __init__(self, code: Any) -> None:
        self._address: int = code.address

    def __call__(self, units: int, *arguments: int | float) -> None:
        """Returns when all units of work are done. A kernel reads what is given as a float with
        `number`, the others with `word`.
        """
        import torch

        given = (each if isinstance(each, int) else _bits(each) for each in arguments)
        words = array("q", (0, units, *given))
        threads = min(units, torch.get_num_threads())
        _TEAM(self._address, words.buffer_info()[0], threads)


def _bits(value: float) -> int:
    return array("q", array("d", (value,)).tobytes())[0]
