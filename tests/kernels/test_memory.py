"""Memory that weights are kept in."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from apply_server.kernels.memory import ask_for_large_pages

CHOICE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
SIZE = 16 << 20


def flags(address: int) -> str:
    """What the system says of the mapping that holds this address."""
    held = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if "-" in first and not first.endswith(":"):
            begin, end = (int(each, 16) for each in first.split("-"))
            held = begin <= address < end
        elif held and first == "VmFlags:":
            return rest
    return ""


@pytest.mark.skipif(not CHOICE.exists(), reason="no such pages in this system")
def test_the_system_is_asked_for_large_pages() -> None:
    memory = torch.empty(SIZE, dtype=torch.uint8)
    ask_for_large_pages(memory.data_ptr(), SIZE)
    assert "hg" in flags(memory.data_ptr() + SIZE // 2).split()


@pytest.mark.parametrize("size", [0, 1, 4095, 4097])
def test_memory_smaller_than_a_page_is_left_alone(size: int) -> None:
    numbers = torch.arange(10_000, dtype=torch.uint8)
    expected = numbers.clone()
    ask_for_large_pages(numbers.data_ptr() + 1, size)
    assert torch.equal(numbers, expected)
