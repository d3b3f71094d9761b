"""The editor's settings: their names, defaults and checks.

A setting `snake_case` is `applyEdit.snakeCase` for the user. Values that can't work are replaced by
defaults and told about, because a typing error must not take the tool away. Must not know when or
how an editor sends them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

from apply_server.config import DEFAULT_PREFIX_CACHE, DEFAULT_REMOVAL_RATIO, Verify
from apply_server.decode.sampling import GREEDY, unsound
from apply_server.errors import Remedy
from apply_server.lsp.protocol import SECTION, camel_case
from apply_server.models import DEFAULT_MODEL

PREVIEWS = ("always", "never")
TRACES = ("off", "messages", "verbose")


@dataclass(frozen=True, slots=True)
class Settings:
    """What users can set.

    `endpoint`, `preview`, `auto_accept_delay` (ms) and `python_path` are the client's business;
    they are here so that both agree on the defaults. `timeout_ms` and `max_file_tokens`: 0 = no
    limit of ours. `max_removal_ratio`: the share of a file's characters that may go unasked.
    `trace_server` is `trace.server` on the wire. The rest is for the server only: `prefix_cache`
    (MiB) bounds what is kept of earlier prompts, `warm_up` loads the model at start, `target`
    "scripted" answers from a file instead of a model, and all others are the engine's (see
    EngineConfig and Sampling).
    """

    model: str = DEFAULT_MODEL
    endpoint: str = ""
    verify: str = str(Verify.ALWAYS)
    preview: str = "always"
    auto_accept_delay: int = 0
    timeout_ms: int = 0
    max_file_tokens: int = 0
    max_removal_ratio: float = DEFAULT_REMOVAL_RATIO
    line_endings: str = "preserve"
    encoding: str = "auto"
    python_path: str = ""
    trace_server: str = "off"
    prefix_cache: int = DEFAULT_PREFIX_CACHE
    warm_up: bool = False
    device: str = "auto"
    dtype: str = "auto"
    threads: int = 0
    profile: str = ""
    proposer: str = "auto"
    draft_model: str = ""
    temperature: float = GREEDY.temperature
    top_p: float = GREEDY.top_p
    top_k: int = GREEDY.top_k
    seed: int = GREEDY.seed
    repetition_penalty: float = GREEDY.repetition_penalty
    target: str = ""


Check = Callable[[object], str]
"""What is wrong with a value, as the end of a sentence; "" where it may stand."""


def update(settings: Settings, values: object) -> tuple[Settings, tuple[str, ...]]:
    """`settings` with what an editor sent, and a sentence for each value that can't work.

    A setting that isn't there, or is null, stays as it is; one that can't work is reset to its
    default. `values` may be the section itself or an object that holds it.
    """
    section = _section(values)
    changed: dict[str, object] = {}
    problems: list[str] = []
    for name, check in CHECKS.items():
        value = _value(section, name)
        if value is None:
            continue
        wrong = check(value)
        changed[name] = getattr(Settings(), name) if wrong else value
        if wrong:
            problems.append(f"{SECTION}.{wire_name(name)} {wrong}; the default is used.")
    return replace(settings, **changed), tuple(problems)  # type: ignore[arg-type]


def wire_name(name: str) -> str:
    """A setting's name for the user, without the section."""
    return "trace.server" if name == "trace_server" else camel_case(name)


def spelled(remedy: Remedy) -> str:
    """A remedy's setting as users of an editor write it; guards are overridden by the request."""
    if remedy.setting == "allowed_guards":
        return f'"Apply Anyway" (`options.allowedGuards: {json.dumps(remedy.values)}`)'
    (value,) = remedy.values
    return f"`{json.dumps(f'{SECTION}.{wire_name(remedy.setting)}')}: {json.dumps(value)}`"


def _section(values: object) -> Mapping[str, object]:
    if not isinstance(values, Mapping):
        return {}
    inner = values.get(SECTION)
    return inner if isinstance(inner, Mapping) else values


def _value(section: Mapping[str, object], name: str) -> object:
    """Editors send a dotted name as it is or as nested objects."""
    head, _, rest = wire_name(name).partition(".")
    if not rest:
        return section.get(head)
    inner = section.get(head)
    return inner.get(rest) if isinstance(inner, Mapping) else section.get(f"{head}.{rest}")


def _text(value: object) -> str:
    return "" if isinstance(value, str) else "must be a string"


def _name(value: object) -> str:
    return "" if isinstance(value, str) and value.strip() else "must be a name"


def _flag(value: object) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[float]:
    return _is_whole(value) or isinstance(value, float)


def _count(value: object) -> str:
    return "" if _is_whole(value) and value >= 0 else "must be a whole number from 0 on"


def _ratio(value: object) -> str:
    return "" if _is_number(value) and 0 < value <= 1 else "must be a number over 0, at most 1"


def _sampled(name: str, *, whole: bool = False) -> Check:
    """For a setting of Sampling's, with Sampling's own bounds."""

    def check(value: object) -> str:
        if whole:
            needed = unsound(name, value) if _is_whole(value) else "a whole number"
        else:
            needed = unsound(name, value) if _is_number(value) else "a number"
        return needed and f"must be {needed}"

    return check


def _one_of(*known: str) -> Check:
    return lambda value: "" if value in known else f"must be one of {', '.join(map(repr, known))}"


CHECKS: Mapping[str, Check] = {
    "model": _name,
    "endpoint": _text,
    "verify": _one_of(*map(str, Verify)),
    "preview": _one_of(*PREVIEWS),
    "auto_accept_delay": _count,
    "timeout_ms": _count,
    "max_file_tokens": _count,
    "max_removal_ratio": _ratio,
    "line_endings": _one_of("preserve"),
    "encoding": _name,
    "python_path": _text,
    "trace_server": _one_of(*TRACES),
    "prefix_cache": _count,
    "warm_up": _flag,
    "device": _name,
    "dtype": _name,
    "threads": _count,
    "profile": _text,
    "proposer": _name,
    "draft_model": _text,
    "temperature": _sampled("temperature"),
    "top_p": _sampled("top_p"),
    "top_k": _sampled("top_k", whole=True),
    "seed": _sampled("seed", whole=True),
    "repetition_penalty": _sampled("repetition_penalty"),
    "target": _one_of("", "scripted"),
}
