"""The direction of imports, where heavy libraries may be, and that nothing holds state, by AST."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "apply_server"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}

# What each part may import, itself and what these may import included in nothing: every arrow is
# named. A part is a module of apply_server or one of its packages.
TEXT = {"errors", "document", "line_diff"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "line_diff": set(),
    "languages": set(),
    "config": {"decode", "errors"},
    "document": {"errors"},
    "request": {"errors", "document", "languages"},
    "tokens": {"errors"},
    "chat_template": {"errors"},
    "files": {"errors", "document"},
    "edit_stream": {"document", "line_diff"},
    "edits": {*TEXT, "edit_stream"},
    "view": TEXT,
    "snippet": {"errors", "languages"},
    "merge": {"errors", "languages", "line_diff", "snippet"},
    "guards": {"errors", "languages", "line_diff", "snippet"},
    "prompt": {"errors", "tokens", "chat_template", "languages"},
    "decode": {"errors"},
    "propose": {"errors", "decode"},
    "folders": set(),
    "kernels": {"folders"},
    "target": {"errors", "decode", "kernels"},
    "models": {"errors", "folders"},
    "engine": {
        *TEXT, "__init__", "chat_template", "config", "decode", "edits", "guards", "languages",
        "merge", "models", "prompt", "propose", "request", "snippet", "target", "tokens", "view",
    },
    "replay": {"errors", "document", "engine", "request"},
    "bench": {
        "config", "decode", "document", "engine", "errors", "models", "prompt", "replay", "request",
        "target", "view",
    },
    "metrics": set(),
    "lsp": {
        "__init__", "config", "decode", "document", "edits", "engine", "errors", "files",
        "languages", "metrics", "models", "request", "snippet",
    },
    "heads": {
        "config", "decode", "document", "engine", "errors", "languages", "models", "prompt",
        "propose", "replay", "request", "tokens", "view",
    },
    "terminal": {"models", "engine", "replay"},
    "arguments": {"__init__", "bench", "config", "decode", "errors", "guards", "models"},
    "cli": {
        "arguments", "bench", "config", "decode", "document", "edits", "engine", "errors", "files",
        "heads", "lsp", "models", "replay", "request", "terminal",
    },
    "__main__": {"cli"},
    "__init__": set(),
}  # fmt: skip

# Named implementations meet in one place only.
BUILD_ONLY = {
    "apply_server.propose.build": {
        "apply_server.engine.build",
        "apply_server.engine.local",
        "apply_server.heads.examples",  # for a type only
    },
    "apply_server.target.scripted": {"apply_server.engine.build"},
    "apply_server.target.transformers_model": {
        "apply_server.engine.build",
        "apply_server.engine.cost",
        "apply_server.engine.threads",  # for a type only
        "apply_server.target.support",  # for a type only
    },
}
HEAVY = {
    "torch": {
        "apply_server.bench.peers",
        "apply_server.engine.cost",
        "apply_server.engine.threads",
        "apply_server.heads.examples",
        "apply_server.heads.run",
        "apply_server.heads.train",
        "apply_server.kernels.attention",
        "apply_server.kernels.byte_linear",
        "apply_server.kernels.linear",
        "apply_server.kernels.rows",
        "apply_server.kernels.team",
        "apply_server.models.convert",
        "apply_server.propose.head_file",
        "apply_server.propose.heads",
        "apply_server.target.attention",
        "apply_server.target.choose",
        "apply_server.target.int8",
        "apply_server.target.kv_cache",
        "apply_server.target.lean",
        "apply_server.target.packed_linear",
        "apply_server.target.support",
        "apply_server.target.transformers_model",
        "apply_server.target.tree_mask",
    },
    "transformers": {
        "apply_server.bench.peers",
        "apply_server.models.convert",
        "apply_server.models.gguf_tokenizer",
        "apply_server.target.attention",
        "apply_server.target.support",
        "apply_server.target.transformers_model",
    },
    "tokenizers": {
        "apply_server.models.convert",
        "apply_server.models.gguf_tokenizer",
        "apply_server.tokens",
    },
    "jinja2": {"apply_server.chat_template"},
    "rich": {"apply_server.bench.table", "apply_server.cli", "apply_server.terminal"},
    "websockets": {"apply_server.lsp.transport"},
    "huggingface_hub": {
        "apply_server.models.hub",
        "apply_server.models.repositories",
        "apply_server.models.snapshot",
    },
}

# The hub's client loads its parts when they are first used; tokenizers come with the conversion.
LIGHT_FOR_MODELS = {"huggingface_hub", "tokenizers"}


def part(module: str) -> str:
    """apply_server.decode.loop → decode; apply_server itself → __init__."""
    return [*module.split("."), "__init__"][1]


def targets(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The modules that a statement imports; of `from package import module` the module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    assert node.level == 0, "imports are absolute"
    for alias in node.names:
        inner = f"{node.module}.{alias.name}"
        yield inner if inner in MODULES else str(node.module)


def imports(tree: ast.AST) -> set[str]:
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    return {target for node in nodes for target in targets(node)}


def run_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that importing a module runs: not in functions, nor for type checkers only."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        for name in ("body", "orelse", "finalbody"):
            yield from run_at_import(getattr(node, name, []))


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module: str) -> None:
    own = part(module)
    inner = {name for name in imports(TREES[module]) if name.split(".")[0] == "apply_server"}
    foreign = {name for name in inner if part(name) != own}
    assert {name for name in foreign if part(name) not in ALLOWED[own]} == set()


def test_the_allowed_directions_have_no_cycle_and_name_only_what_exists() -> None:
    parts = {part(module) for module in MODULES}
    assert set(ALLOWED) == parts
    settled: set[str] = set()
    while ready := {name for name in ALLOWED.keys() - settled if ALLOWED[name] <= settled}:
        settled |= ready
    assert ALLOWED.keys() - settled == set()


@pytest.mark.parametrize("one", ["propose", "target"])
def test_who_drafts_and_who_verifies_do_not_know_each_other(one: str) -> None:
    assert not {"propose", "target", "engine"} - {one} & ALLOWED[one]


@pytest.mark.parametrize("implementation", BUILD_ONLY)
def test_implementations_are_named_in_one_place(implementation: str) -> None:
    users = {name for name, tree in TREES.items() if implementation in imports(tree)}
    assert users <= BUILD_ONLY[implementation]


@pytest.mark.parametrize("library", ["pygls", "lsprotocol"])
def test_only_the_language_server_knows_lsp(library: str) -> None:
    for module, tree in TREES.items():
        used = any(name.split(".")[0] == library for name in imports(tree))
        assert not used or part(module) == "lsp"


@pytest.mark.parametrize("library", ["numba", "llvmlite"])
def test_only_the_kernels_know_the_compiler(library: str) -> None:
    users = {
        part(module)
        for module, tree in TREES.items()
        if any(name.split(".")[0] == library for name in imports(tree))
    }
    assert users == {"kernels"}


@pytest.mark.parametrize("module", [name for name in MODULES if part(name) != "kernels"])
def test_kernels_are_imported_inside_functions(module: str) -> None:
    """They import numba and compile."""
    at_import = {
        target
        for node in run_at_import(TREES[module].body)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for target in targets(node)
    }
    assert not [name for name in at_import if name.startswith("apply_server.kernels")]


@pytest.mark.parametrize("library", HEAVY)
def test_a_heavy_library_is_imported_in_named_modules_only(library: str) -> None:
    users = {
        module
        for module, tree in TREES.items()
        if any(name.split(".")[0] == library for name in imports(tree))
    }
    assert users <= HEAVY[library]


@pytest.mark.parametrize("module", MODULES)
def test_a_heavy_library_is_imported_inside_functions(module: str) -> None:
    lazy = HEAVY.keys() - (LIGHT_FOR_MODELS if part(module) == "models" else set())
    at_import = {
        target.split(".")[0]
        for node in run_at_import(TREES[module].body)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for target in targets(node)
    }
    assert at_import & lazy == set()


MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTABLE_CALLS = {"list", "dict", "set", "defaultdict", "Counter", "deque", "bytearray"}
CHANGING = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem",
    "remove", "setdefault", "sort", "update",
}  # fmt: skip


def mutable_constants(tree: ast.Module) -> set[str]:
    """Names that a module binds to lists, dicts and the like."""
    found = set()
    for node in run_at_import(tree.body):
        value = getattr(node, "value", None)
        call = isinstance(value, ast.Call) and getattr(value.func, "id", "") in MUTABLE_CALLS
        if isinstance(node, ast.Assign | ast.AnnAssign) and (isinstance(value, MUTABLE) or call):
            goals = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {goal.id for goal in goals if isinstance(goal, ast.Name)}
    return found


def changed_names(tree: ast.Module) -> set[str]:
    """Names whose objects a module's functions change in place."""
    found = set()
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    for node in (inner for function in functions for inner in ast.walk(function)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in CHANGING:
                found.add(ast.unparse(node.func.value))
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            found.add(ast.unparse(node.value))
        elif isinstance(node, ast.AugAssign):
            found.add(ast.unparse(node.target))
    return found


@pytest.mark.parametrize("module", MODULES)
def test_no_module_holds_state(module: str) -> None:
    tree = TREES[module]
    constants = mutable_constants(tree)
    assert constants & changed_names(tree) == set()
    written = {name for name in constants if not name.strip("_").isupper() and name != "__all__"}
    assert written == set(), "what a module binds to a list or dict is a constant"
    assert [node for node in ast.walk(tree) if isinstance(node, ast.Global)] == []
    cached = [
        decorator
        for node in run_at_import_functions(tree)
        for decorator in node.decorator_list
        if re.match(r"(functools\.)?(lru_)?cache\b", ast.unparse(decorator))
    ]
    assert cached == [], "a module-level cache is state"


def run_at_import_functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in (tree, *(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef))):
        yield from (inner for inner in node.body if isinstance(inner, ast.FunctionDef))


@pytest.mark.parametrize("module", set(MODULES) - {"apply_server.cli"})
def test_only_the_command_line_prints(module: str) -> None:
    for node in ast.walk(TREES[module]):
        assert not (isinstance(node, ast.Call) and ast.unparse(node.func) == "print")
        assert not (isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.stdout")


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is_for(module: str) -> None:
    assert module == "apply_server.__main__" or ast.get_docstring(TREES[module])


WITHOUT_TORCH = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "transformers"}:
            raise ImportError(f"{name} was imported")
sys.meta_path.insert(0, Blocked())
from apply_server.cli import main
status = main(sys.argv[1:])
assert not {"torch", "transformers"} & {name.split(".")[0] for name in sys.modules}
sys.exit(status)
"""


def without_torch(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=ROOT,
        timeout=120,
    )


@pytest.mark.parametrize("arguments", [[], ["apply"], ["bench"], ["replay"], ["serve"], ["models"]])
def test_help_needs_no_torch(arguments: list[str]) -> None:
    done = without_torch(*arguments, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: apply-server")


def test_a_splice_needs_no_torch(tmp_path: Path) -> None:
    file, snippet = tmp_path / "file.py", tmp_path / "snippet.py"
    file.write_bytes(b"def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    snippet.write_bytes(b"def g():\n    return 3\n")
    done = without_torch("apply", str(file), "--snippet", str(snippet), "--verify", "never")
    assert (done.returncode, done.stderr) == (0, "")
    assert "-    return 2\n+    return 3\n" in done.stdout


def test_a_scripted_replay_needs_no_torch() -> None:
    arguments = ("replay", "fixtures", "--target", "scripted", "--tokenizer", "words")
    done = without_torch(*arguments, "--only", "python-timeout", "--baseline", "plain")
    assert (done.returncode, done.stderr) == (0, "")
    assert '"exact_match": 1' in done.stdout
    assert '"same_output": true' in done.stdout
