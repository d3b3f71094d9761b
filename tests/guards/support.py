"""Builds guards' input from two texts."""

from __future__ import annotations

from apply_server.guards import Finding, GuardInput, check
from apply_server.line_diff import line_edits
from apply_server.snippet.text import split_lines

Spans = tuple[tuple[int, int], ...]

PYTHON = """\
import json
import sys

LIMIT = 10


def load(path):
    with open(path) as stream:
        return json.load(stream)


def total(orders):
    amount = 0
    for order in orders:
        amount += order["price"]
    return amount


def report(orders):
    print("orders:", len(orders))
    print("total:", total(orders))


def main():
    report(load(sys.argv[1]))


if __name__ == "__main__":
    main()
"""


def given(
    original: str,
    final: str,
    instruction: str = "",
    snippet: str = "",
    *,
    language: str | None = None,
    hunks: Spans | None = None,
) -> GuardInput:
    before, after = tuple(split_lines(original)), tuple(split_lines(final))
    return GuardInput(
        before, after, line_edits(before, after), instruction, snippet, language, hunks
    )


def verdicts(findings: tuple[Finding, ...]) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(finding.guard, finding.level, finding.lines) for finding in findings]


def found(
    original: str,
    final: str,
    instruction: str = "",
    snippet: str = "",
    *,
    language: str | None = None,
    hunks: Spans | None = None,
) -> list[tuple[str, str, tuple[int, ...]]]:
    case = given(original, final, instruction, snippet, language=language, hunks=hunks)
    return verdicts(check(case))
