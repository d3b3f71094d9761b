"""What is asked for: a byte order mark is dropped where it is one, and nowhere else."""

from __future__ import annotations

import pytest

from apply_server.document import Document
from apply_server.request import EditRequest

BOM = "\ufeff"


@pytest.mark.parametrize(
    ("file", "snippet", "read"),
    [
        # the snippet's own
        ("a\nb\n", f"{BOM}a\nc\n", "a\nc\n"),
        ("", f"{BOM}a\n", "a\n"),
        # the file's, quoted with its first line
        ("a\nb\n", f"-{BOM}a\n+{BOM}c\n", "-a\n+c\n"),
        ("a\nb\n", f" {BOM}a\r\n-b\r\n", " a\r\n-b\r\n"),
        ("a\nb\n", f"<<<<<<< SEARCH\n{BOM}a\n=======\n{BOM}c\n", "<<<<<<< SEARCH\na\n=======\nc\n"),
        # characters of the code
        ("a\nb\n", f"b\n{BOM}c\n", f"b\n{BOM}c\n"),
        (f"\na\n {BOM}  b\n", f"a\n {BOM}  b\n", f"a\n {BOM}  b\n"),
        (f"a\n{BOM}b\n", f"{BOM}b\n", f"{BOM}b\n"),
        ("a\nb\n", f"a{BOM}\n", f"a{BOM}\n"),
    ],
)
def test_byte_order_marks_of_a_snippet(file: str, snippet: str, read: str) -> None:
    assert EditRequest(Document.from_text(file), "x.py", snippet=snippet).snippet == read
