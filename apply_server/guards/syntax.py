"""Whether a text still parses, by tree-sitter's grammars. The only place that knows a parser.

Where there is no grammar for a language there is no answer. Must not know what an edit is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from apply_server.guards.model import Finding, GuardInput

if TYPE_CHECKING:
    from tree_sitter import Node
    from tree_sitter_language_pack import SupportedLanguage

NAME = "syntax"

# Where the grammar is called otherwise than the language; "" where a grammar of that name would
# judge another language's text.
_GRAMMARS: Mapping[str, str] = {
    "javascriptreact": "javascript",
    "jsx": "javascript",
    "makefile": "make",
    "objective-c": "objc",
    "plaintext": "",
    "restructuredtext": "rst",
    "shell": "bash",
    "shellscript": "bash",
    "typescriptreact": "tsx",
    "viml": "vim",
}


def broken_syntax(given: GuardInput) -> Iterator[Finding]:
    """The original parsed and the result doesn't."""
    if not given.edits or not given.language:
        return
    row = first_error(given.final, given.language)
    # The original is parsed last, as most results have no error at all.
    if row is None or first_error(given.original, given.language) is not None:
        return
    yield Finding(
        NAME,
        "block",
        f"The file was valid {given.language} before the edit and no longer is, first at line "
        f"{row + 1} of the result; look at the diff there.",
        (row + 1,),
    )


def first_error(lines: Sequence[str], language: str) -> int | None:
    """The row of the first syntax error; None if there is none or no grammar to tell."""
    root = _parse("\n".join(lines) + "\n", language)
    if root is None or not root.has_error:
        return None
    return _error_row(root)


def _parse(text: str, language: str) -> Node | None:
    name = language.lower()
    grammar = _GRAMMARS.get(name, name)
    try:
        from tree_sitter_language_pack import get_parser

        parser = get_parser(cast("SupportedLanguage", grammar))
    except (ImportError, LookupError):
        return None
    return parser.parse(text.encode("utf-8", "surrogatepass")).root_node


def _error_row(node: Node) -> int:
    """Down to the first node that is an error itself or stands for a missing one.

    A node can have an error that no child has, when the error is in what was skipped.
    """
    while not node.is_error and not node.is_missing:
        inner = next((child for child in node.children if child.has_error), None)
        if inner is None:
            break
        node = inner
    return int(node.start_point.row)
