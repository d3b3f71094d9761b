"""File names → language ids, as the Language Server Protocol spells them.

Must not know what anybody does with a language.
"""

from __future__ import annotations

from pathlib import PurePath

_BY_SUFFIX = {
    ".bash": "shellscript",
    ".c": "c",
    ".cc": "cpp",
    ".clj": "clojure",
    ".cpp": "cpp",
    ".cs": "csharp",
    ".css": "css",
    ".cxx": "cpp",
    ".dart": "dart",
    ".diff": "diff",
    ".el": "elisp",
    ".erl": "erlang",
    ".ex": "elixir",
    ".exs": "elixir",
    ".fs": "fsharp",
    ".go": "go",
    ".h": "c",
    ".hpp": "cpp",
    ".hs": "haskell",
    ".htm": "html",
    ".html": "html",
    ".ini": "ini",
    ".java": "java",
    ".jl": "julia",
    ".js": "javascript",
    ".json": "json",
    ".jsonc": "jsonc",
    ".jsx": "javascriptreact",
    ".kt": "kotlin",
    ".kts": "kotlin",
    ".less": "less",
    ".lua": "lua",
    ".m": "objective-c",
    ".markdown": "markdown",
    ".md": "markdown",
    ".mjs": "javascript",
    ".mk": "makefile",
    ".php": "php",
    ".pl": "perl",
    ".ps1": "powershell",
    ".py": "python",
    ".pyi": "python",
    ".r": "r",
    ".rb": "ruby",
    ".rs": "rust",
    ".rst": "restructuredtext",
    ".scala": "scala",
    ".scss": "scss",
    ".sh": "shellscript",
    ".sql": "sql",
    ".svelte": "svelte",
    ".swift": "swift",
    ".tex": "latex",
    ".toml": "toml",
    ".ts": "typescript",
    ".tsx": "typescriptreact",
    ".vim": "viml",
    ".vue": "vue",
    ".xml": "xml",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".zig": "zig",
    ".zsh": "shellscript",
}
_BY_NAME = {
    "Dockerfile": "dockerfile",
    "Makefile": "makefile",
    "GNUmakefile": "makefile",
    "CMakeLists.txt": "cmake",
}

_MARKDOWN = frozenset({"markdown", "md", "mdx", "rmd", "quarto"})


def is_markdown(language: str | None) -> bool:
    """Whether code fences are that language's own text."""
    return (language or "").lower() in _MARKDOWN


def language_of(name: str) -> str:
    """The language id for a file's name; "" where the name doesn't tell."""
    path = PurePath(name)
    return _BY_NAME.get(path.name) or _BY_SUFFIX.get(path.suffix.lower(), "")
