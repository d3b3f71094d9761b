"""Results that no longer parse, in many languages; no answer where there is no grammar."""

from __future__ import annotations

import sys

import pytest

from apply_server.guards.syntax import first_error
from apply_server.languages import _BY_NAME, _BY_SUFFIX
from tests.guards.support import found

BROKEN = {
    "c": ("int f(void) {\n  return 1;\n}\n", "int f(void) {\n  return (1;\n}\n"),
    "cpp": ("class A {\n  int b;\n};\n", "class A {\n  int b;\n\n"),
    "csharp": ("class A {\n  int B() { return 1; }\n}\n", "class A {\n  int B() { return 1; \n"),
    "css": ("a {\n  color: red;\n}\n", "a {\n  color: red;\n\n"),
    "go": ("package a\n\nfunc f() {\n}\n", "package a\n\nfunc f() {\n\n"),
    "html": ("<p>\n<b>a</b>\n</p>\n", "<p>\n<b>a</b\n</p>\n"),
    "java": ("class A {\n  int b;\n}\n", "class A {\n  int b\n}\n"),
    "javascript": ("f({\n  a: 1,\n});\n", "f({\n  a: 1,\n;\n"),
    "javascriptreact": ("const a = (\n  <b>c</b>\n);\n", "const a = (\n  <b>c\n);\n"),
    "json": ('{\n  "a": 1\n}\n', '{\n  "a": 1\n\n'),
    "kotlin": ("fun f() {\n  g(1)\n}\n", "fun f() {\n  g(1\n}\n"),
    "lua": ("function f()\n  return 1\nend\n", "function f()\n  return 1\n\n"),
    "php": ("<?php\nf(1);\n", "<?php\nf(1;\n"),
    "python": ("def f():\n    return 1\n", "def f(:\n    return 1\n"),
    "ruby": ("def f\n  1\nend\n", "def f\n  1\n\n"),
    "rust": ("fn f() {\n  g();\n}\n", "fn f() {\n  g(;\n}\n"),
    "shell": ("if a; then\n  b\nfi\n", "if a; then\n  b\n\n"),
    "shellscript": ("if a; then\n  b\nfi\n", "if a; then\n  b\n\n"),
    "sql": ("SELECT a FROM b WHERE c = 1;\n", "SELECT a FROM b WHERE (c = 1;\n"),
    "swift": ("func f() {\n  g(1)\n}\n", "func f() {\n  g(1\n}\n"),
    "toml": ('[a]\nb = "c"\n', '[a]\nb = "c\n'),
    "tsx": ("const a = (\n  <b>c</b>\n);\n", "const a = (\n  <b>c\n);\n"),
    "typescript": ("interface A {\n  b: number;\n}\n", "interface A {\n  b: number;\n\n"),
    "typescriptreact": ("const a = (\n  <b>c</b>\n);\n", "const a = (\n  <b>c\n);\n"),
    "yaml": ("a:\n  b: [1, 2]\n", "a:\n  b: [1, 2\n"),
}


@pytest.mark.parametrize("language", sorted(BROKEN))
def test_a_file_that_stops_parsing_blocks(language: str) -> None:
    valid, broken = BROKEN[language]
    found_in = found(valid, broken, "Change it.", language=language)
    assert [(name, level) for name, level, _ in found_in if name == "syntax"] == [
        ("syntax", "block")
    ]


@pytest.mark.parametrize("language", sorted(BROKEN))
def test_a_file_that_did_not_parse_before_is_not_judged(language: str) -> None:
    valid, broken = BROKEN[language]
    for final in (valid, broken + "\n" + broken):
        names = [name for name, _, _ in found(broken, final, "Change it.", language=language)]
        assert "syntax" not in names


def test_the_line_is_the_first_error() -> None:
    original = "a = 1\nb = [1, 2]\nc = 3\n"
    assert found(original, "a = 1\nb = [1, 2)]\nc = 3\n", "Change b.", language="python") == [
        ("syntax", "block", (2,))
    ]


@pytest.mark.parametrize("language", [None, "", "plaintext", "no-such-language", "diff"])
def test_languages_without_a_grammar_are_not_judged(language: str | None) -> None:
    assert found("f(\n", "f((\n", "x", language=language) == []
    assert found("f()\n", "f(()\n", "x", language=language) == []


def test_without_the_package_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tree_sitter_language_pack", None)
    assert found("f()\n", "f(()\n", "x", language="python") == []


@pytest.mark.parametrize("language", sorted({*_BY_SUFFIX.values(), *_BY_NAME.values()}))
def test_every_known_language_takes_any_text(language: str) -> None:
    for lines in ((), ("",), ("(", "\x00 \ud800 </p> '''")):
        row = first_error(lines, language)
        assert row is None or 0 <= row <= len(lines)
