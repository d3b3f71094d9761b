"""The modes that a benchmark compares: their names, and which of them a command line asks for.

Must not know how a mode decodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from apply_server.errors import InvalidRequest

PLAIN, OURS, HF_PLAIN = "plain", "ours", "hf-plain"
HF_LOOKUP, HF_LOOKUP_BEST = "hf-lookup", "hf-lookup-best"
NAMES = (PLAIN, HF_PLAIN, HF_LOOKUP, HF_LOOKUP_BEST, OURS)
SNIPPET, INSTRUCTION = KINDS = ("snippet", "instruction")
GRID_K, GRID_N = (10, 32, 64), (2, 3, 4)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Settings of transformers' prompt lookup.

    `k` is `prompt_lookup_num_tokens`, `n` is `max_matching_ngram_size`. The defaults are those of
    its PromptLookupCandidateGenerator.
    """

    k: int = 10
    n: int = 2


class Family(StrEnum):
    """Whose kernels a mode runs on; speed limits hold within a family."""

    OURS = "ours"
    HF = "hf"


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to decode. `lookup` is None where nothing is looked up in the prompt; `proposer` is
    None where the configuration's is used.
    """

    name: str
    family: Family
    lookup: Lookup | None = None
    proposer: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What to run. `tuned` names the modes among which `hf-lookup-best` is chosen afterwards."""

    modes: tuple[Mode, ...]
    tuned: tuple[str, ...] = ()


def choose(names: Sequence[str], ks: Sequence[int], ns: Sequence[int]) -> Choice:
    """The modes called `names`; `hf-lookup-best` stands for every k of `ks` with every n of `ns`,
    `ours:SPEC` for ours with the proposer of that specification.

    Modes come in the order of NAMES, each once, and then those of a specification. Raises
    InvalidRequest for unknown names and for settings below one.
    """
    specified = dict.fromkeys(name for name in names if name.startswith(f"{OURS}:"))
    unknown = sorted({*names} - {*NAMES, *specified})
    if unknown or not names:
        problem = f"Unknown mode {', '.join(unknown)!r}" if unknown else "No mode is named"
        raise InvalidRequest(f"{problem}. Choose from {', '.join(NAMES)} and ours:PROPOSER.")
    if not ks or not ns or min(*ks, *ns) < 1:
        raise InvalidRequest("Prompt lookup needs at least one k and one n, each 1 or more.")
    grid = [_tuned(Lookup(k, n)) for k, n in sorted(set(product(ks, ns)))]
    available = {
        PLAIN: [Mode(PLAIN, Family.OURS, proposer="none")],
        HF_PLAIN: [Mode(HF_PLAIN, Family.HF)],
        HF_LOOKUP: [Mode(HF_LOOKUP, Family.HF, Lookup())],
        HF_LOOKUP_BEST: grid,
        OURS: [Mode(OURS, Family.OURS)],
    }
    modes = [mode for name in NAMES if name in names for mode in available[name]]
    modes += [Mode(name, Family.OURS, proposer=name.removeprefix(f"{OURS}:")) for name in specified]
    return Choice(
        tuple(modes), tuple(mode.name for mode in grid) if HF_LOOKUP_BEST in names else ()
    )


def _tuned(lookup: Lookup) -> Mode:
    return Mode(f"{HF_LOOKUP}:k={lookup.k},n={lookup.n}", Family.HF, lookup)
