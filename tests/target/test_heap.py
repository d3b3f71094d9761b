"""What was freed is the system's again."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# Blocks too small to be mapped one by one, and one at the end that keeps the heap from shrinking.
PROGRAM = """
from apply_server.target.heap import give_back

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

blocks = [bytearray(100_000) for _ in range(2000)]
last = blocks.pop()
full = resident()
blocks.clear()
kept = resident()
give_back()
print(full, kept, resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries keep no such heaps")
def test_freed_memory_goes_back() -> None:
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    ).stdout
    full, _, after = map(int, output.split())
    assert full - after > 150_000, output  # KiB, of the 195,000 allocated
