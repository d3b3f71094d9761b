"""Which URIs name the same document, and what they say about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from apply_server.errors import InvalidRequest, ReadOnly
from apply_server.lsp.uris import DocumentUri


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:///c%3A/x.py", "file:///C:/x.py"),
        ("file:///d%3a/a%20b.py", "file:///D%3A/a b.py"),
        ("file:///w/%C3%A9.py", "file:///w/é.py"),
        ("FILE:///w/x.py", "file:///w/x.py"),
        ("file://Server/w/x.py", "file://server/w/x.py"),
    ],
)
def test_spellings_of_one_document(one: str, other: str) -> None:
    first, second = DocumentUri.parse(one), DocumentUri.parse(other)
    assert first == second
    assert hash(first) == hash(second)
    assert (first.text, second.text) == (one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("file:///w/x.py", "file:///w/X.py"),
        ("file:///w/a%23b.py", "file:///w/a%2523b.py"),
        ("vscode-notebook-cell:/w/n.ipynb#W0", "vscode-notebook-cell:/w/n.ipynb#W1"),
        ("untitled:Untitled-1", "untitled:Untitled-2"),
        ("file:///w/x.py", "untitled:/w/x.py"),
    ],
)
def test_different_documents(one: str, other: str) -> None:
    assert DocumentUri.parse(one) != DocumentUri.parse(other)


@pytest.mark.parametrize(
    ("uri", "name", "path"),
    [
        ("file:///w/a%20b%23c%25d.py", "a b#c%d.py", "/w/a b#c%d.py"),
        ("file:///w/%C3%A9/%F0%9F%98%8B.yaml", "😋.yaml", "/w/é/😋.yaml"),
        ("file://localhost/w/x.py", "x.py", "/w/x.py"),
        ("file://server/share/x.py", "x.py", "//server/share/x.py"),
        ("untitled:Untitled-1", "Untitled-1", None),
        ("vscode-notebook-cell:/w/n%201.ipynb#W0", "n 1.ipynb", None),
        ("file://", "file", None),
    ],
)
def test_names_and_paths(uri: str, name: str, path: str | None) -> None:
    parsed = DocumentUri.parse(uri)
    assert parsed.name == name
    assert parsed.file == (None if path is None else Path(path))


@pytest.mark.parametrize("uri", ["", "x.py", "/w/x.py", "//[bad/x.py", ":x"])
def test_what_is_no_uri(uri: str) -> None:
    with pytest.raises(InvalidRequest):
        DocumentUri.parse(uri)


@pytest.mark.parametrize(
    "uri",
    ["git:/w/x.py?%7B%22ref%22%3A%22HEAD%22%7D", "output:log", "jdt://contents/a.class",
     "http://example.com/x.py", "vscode-scm:git"],
)  # fmt: skip
def test_views_of_other_things_are_read_only(uri: str) -> None:
    with pytest.raises(ReadOnly, match="read-only"):
        DocumentUri.parse(uri).check_writable()


@pytest.mark.parametrize(
    "uri", ["file:///x.py", "untitled:Untitled-1", "vscode-notebook-cell:/n.ipynb#W0", "file://"]
)
def test_documents_that_take_edits(uri: str) -> None:
    DocumentUri.parse(uri).check_writable()
