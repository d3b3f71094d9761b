"""Checks on a finished rewrite before anything is written: pass, warn or block.

Must not know where the rewrite came from (a model or a merge) nor where it goes.
"""

from __future__ import annotations

from collections.abc import Sequence

from apply_server.errors import GuardBlocked, InvalidRequest, Remedy
from apply_server.guards import leaks, loss, outside, syntax
from apply_server.guards.model import Finding, GuardInput, Level, Side
from apply_server.guards.scope import Scope

__all__ = ["GUARD_NAMES", "Finding", "GuardInput", "Level", "Side", "check", "enforce"]

GUARD_NAMES = (
    loss.TRUNCATED,
    leaks.MARKER,
    leaks.FENCE,
    leaks.THINKING,
    leaks.PROSE,
    loss.DUPLICATED_TAIL,
    loss.MOSTLY_GONE,
    outside.NAME,
    syntax.NAME,
)


def check(given: GuardInput) -> tuple[Finding, ...]:
    """All that looks wrong with a rewrite, in the order of GUARD_NAMES; () where nothing does."""
    if not given.edits:
        return ()
    scope = Scope(given)
    return (
        *loss.truncated(given, scope),
        *leaks.leaked_markers(given),
        *leaks.leaked_fences(given),
        *leaks.leaked_thinking(given),
        *leaks.leaked_prose(given),
        *loss.duplicated_tail(given),
        *loss.mostly_gone(given, scope),
        *outside.outside_hunks(given, scope),
        *syntax.broken_syntax(given),
    )


def enforce(findings: Sequence[Finding], allowed: frozenset[str], diff: str) -> tuple[Finding, ...]:
    """The findings to report beside the result, overridden ones included.

    `allowed` names the guards that the user overrides, `diff` is the refused change for the user to
    see. Raises GuardBlocked where a finding blocks, InvalidRequest for a name that is no guard's.
    """
    unknown = sorted(allowed.difference(GUARD_NAMES))
    if unknown:
        raise InvalidRequest(
            f"There is no guard named {unknown[0]!r}. Choose from {', '.join(GUARD_NAMES)}."
        )
    blocking = [
        finding for finding in findings if finding.level == "block" and finding.guard not in allowed
    ]
    if blocking:
        raise GuardBlocked(
            f"{blocking[0].message} Nothing was changed.",
            _details(blocking, diff),
            Remedy("allowed_guards", _names(blocking), "takes the result as it is."),
        )
    return tuple(findings)


def _details(blocking: Sequence[Finding], diff: str) -> dict[str, object]:
    return {
        "guards": list(_names(blocking)),
        "findings": [finding.to_json() for finding in blocking],
        "diff": diff,
    }


def _names(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.guard for finding in findings))
