"""Settings as values, with one set of defaults for the command line, replay and the server.

Must not know where a setting came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from apply_server.decode.sampling import GREEDY, Sampling
from apply_server.errors import InvalidRequest

DEFAULT_REMOVAL_RATIO = 0.6
# About 4,500 tokens of the default model: the file that is being edited, or several short ones.
DEFAULT_PREFIX_CACHE = 256


class Verify(StrEnum):
    """When the model decides: for every edit, where the merge is in doubt, or for none."""

    ALWAYS = "always"
    WHEN_AMBIGUOUS = "whenAmbiguous"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How edits are computed.

    `model`, `device`, `dtype` and `profile` ("" = the model's own) say what the target is;
    `threads` is how many the model computes with on a processor (0 = as many as measure best);
    `proposer` names the drafting ("none" = plain decoding), `draft_model` the smaller model that
    drafts novel text ("" = none) and `heads` a file of draft heads ("" = those beside the model);
    `cost` is what passes cost: "rho=15", or "" for what they cost here; `sampling` says how tokens
    are chosen; `max_new` caps the answer in tokens (None = derived from the file) and `max_file`
    the file; `verify` says when the model is asked at all; `allowed_guards` names the guards whose
    objections are overridden; `prefix_cache` is how many MiB of earlier prompts' keys and values
    are kept for later edits of the same files; `max_removal` is the share of a file's characters
    that may go unasked. Raises InvalidRequest for values that can't work.
    """

    model: str
    device: str = "auto"
    dtype: str = "auto"
    profile: str = ""
    threads: int = 0
    proposer: str = "auto"
    draft_model: str = ""
    heads: str = ""
    cost: str = ""
    sampling: Sampling = GREEDY
    max_new: int | None = None
    verify: Verify = Verify.ALWAYS
    allowed_guards: frozenset[str] = frozenset()
    max_file: int | None = None
    max_removal: float = DEFAULT_REMOVAL_RATIO
    prefix_cache: int = DEFAULT_PREFIX_CACHE

    def __post_init__(self) -> None:
        if self.max_new is not None and self.max_new < 1:
            raise InvalidRequest(f"The output limit must be at least 1 token, not {self.max_new}.")
        if self.prefix_cache < 0:
            raise InvalidRequest(f"The prefix cache can't be {self.prefix_cache} MiB; 0 is none.")

    @property
    def drafting(self) -> str:
        """The proposer, draft model and heads included: where they are named, they are meant to be
        used.
        """
        if self.proposer == "none":
            return self.proposer
        named = {"model": self.draft_model, "heads": self.heads}
        meant = [kind for kind, name in named.items() if name and kind not in self.proposer]
        return "+".join((self.proposer, *meant))
