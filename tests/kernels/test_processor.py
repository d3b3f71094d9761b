"""What is compiled for which processor, and the kernels as an older one runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from apply_server.kernels.processor import Processor, of_features, processor

AVX2 = "avx,avx2,bmi,bmi2,cx16,f16c,fma,lzcnt,movbe,popcnt,sse,sse2,sse3,sse4.1,sse4.2,ssse3"
AVX512 = f"{AVX2},avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
KERNELS = ("linear", "attention", "rows")


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("", Processor(8, False, False, False)),
        ("neon", Processor(8, False, False, False)),
        (AVX2, Processor(8, True, False, False)),
        (f"{AVX2},avxvnni", Processor(8, True, True, False)),
        (AVX512, Processor(8, True, False, False)),
        (f"{AVX512},avx512vnni", Processor(8, True, True, False)),
        (f"{AVX512},avx512vnni,avx512bf16", Processor(16, True, True, True)),
        (f"{AVX2},avx512f,avx512bw,avx512vnni,avx512bf16", Processor(8, True, False, False)),
    ],
)
def test_a_processors_features_say_what_is_compiled(features: str, expected: Processor) -> None:
    assert of_features(frozenset(features.split(","))) == expected


@pytest.mark.parametrize(
    "features",
    [
        pytest.param(AVX2, id="avx2"),
        pytest.param(f"{AVX512},avx512vnni", id="vnni"),
    ],
)
@pytest.mark.skipif(processor().lanes == 8, reason="this is such a processor, or an older one")
def test_kernels_for_an_older_processor_run_here_too(features: str) -> None:
    older = {
        "NUMBA_CPU_NAME": "x86-64",
        "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in features.split(",")),
    }
    tests = [str(Path(__file__).with_name(f"test_{name}.py")) for name in KERNELS]
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", *tests],
        env={**os.environ, **older},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout[-4000:]
    summary = found.stdout.splitlines()[-1]
    assert " passed" in summary
    assert "skipped" not in summary
