"""Snippets without markers: whole files and patches."""

from __future__ import annotations

import pytest

from tests.merge.support import applied, run

FUNCTIONS = "def a():\n    return 1\n\n\ndef b():\n    return 2\n\n\ndef c():\n    return 3\n"


def test_a_whole_file_is_taken_as_it_is():
    original = "one\ntwo\nthree\nfour\nfive\n"
    edit = "one\n2\nthree\nfour\nfive\nsix\n"
    result = run(original, edit, "text")
    assert result.unambiguous
    assert [(hunk.start, hunk.end, hunk.lines) for hunk in result.hunks] == [
        (1, 2, ("2",)),
        (5, 5, ("six",)),
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('msgstr "It\'s %s"', 'msgstr "It’s %s"'),
        ("<p>don't</p>", "<p>don&apos;t</p>"),
        ("a\u00a0b", "a b"),
        ("x = 1", "x = 1  "),
        ("\tx", "    x"),
        # Equal for a library that compares hashes.
        ("", "\0"),
        ("a", "a\0"),
    ],
)
def test_a_difference_in_characters_only_is_a_change(old, new):
    assert applied(f"head\n{old}\nfoot\n", f"head\n{new}\nfoot\n", "text") == f"head\n{new}\nfoot\n"


def test_the_same_text_is_no_change():
    assert run(FUNCTIONS, FUNCTIONS, "python").hunks == ()


def test_a_whole_file_that_drops_most_lines_is_doubtful():
    original = "".join(f"line {n}\n" for n in range(40))
    result = run(original, "line 1\nother\n", "text")
    assert not result.unambiguous
    assert result.confidence < 0.5


PATCHES = {
    "function": (
        "python",
        FUNCTIONS,
        "def b():\n    return 20\n",
        FUNCTIONS.replace("return 2\n", "return 20\n"),
    ),
    "shorter body": (
        "python",
        "def a():\n    return 1\n\n\ndef b(x):\n    y = x\n    z = y\n    return z\n\n\nN = 3\n",
        "def b(x):\n    return x\n",
        "def a():\n    return 1\n\n\ndef b(x):\n    return x\n\n\nN = 3\n",
    ),
    "method": (
        "ruby",
        "class A\n  def x\n    1\n  end\n\n  def y\n    2\n  end\nend\n",
        "  def x\n    1 + 1\n  end\n",
        "class A\n  def x\n    1 + 1\n  end\n\n  def y\n    2\n  end\nend\n",
    ),
    "dedented key": (
        "yaml",
        'all:\n  web:\n    image: a:1\n    ports:\n      - "80"\n  db:\n    image: c\n',
        'web:\n  image: a:2\n  ports:\n    - "80"\n    - "443"\n',
        'all:\n  web:\n    image: a:2\n    ports:\n      - "80"\n      - "443"\n  db:\n'
        "    image: c\n",
    ),
    "new signature": (
        "go",
        "func A() {\n}\n\nfunc B(x int) int {\n\treturn x\n}\n\nfunc C() {\n}\n",
        "func B(x int, y int) int {\n\treturn x + y\n}\n",
        "func A() {\n}\n\nfunc B(x int, y int) int {\n\treturn x + y\n}\n\nfunc C() {\n}\n",
    ),
    "assignment": ("python", "A = 1\nB = 2\nC = 3\n", "B = 5\n", "A = 1\nB = 5\nC = 3\n"),
}


@pytest.mark.parametrize("kind", PATCHES)
def test_a_patch_replaces_its_symbol_and_nothing_else(kind):
    language, original, edit, expected = PATCHES[kind]
    assert applied(original, edit, language) == expected


@pytest.mark.parametrize("kind", PATCHES)
def test_a_patch_that_is_applied_already_changes_nothing(kind):
    language, _, edit, expected = PATCHES[kind]
    assert run(expected, edit, language).hunks == ()


def test_a_class_given_in_part_keeps_its_other_methods():
    original = (
        "N = 1\n\n\nclass A:\n    def x(self):\n        return 1\n\n    def y(self):\n"
        "        return 2\n"
    )
    edit = "class A:\n    def x(self):\n        return 10\n"
    assert applied(original, edit, "python") == original.replace("return 1\n", "return 10\n")
