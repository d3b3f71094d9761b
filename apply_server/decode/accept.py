"""Walk a draft against the target's choices.

The target chose, greedily or by sampling, before this module is asked; walking is all that is left,
so it is the same for greedy and sampled decoding, for chains and for trees.
"""

from __future__ import annotations

from apply_server.decode.draft import ROOT, Draft
from apply_server.decode.target import UNDECIDED, Verdict


def accept(draft: Draft, verdict: Verdict) -> tuple[tuple[int, ...], int]:
    """The accepted path and the target's own next token.

    Starting at the root, descend while the target's choice is a child; where it isn't, that choice
    is the correction, and after a leaf it is the bonus token. So every step emits at least one
    token, and exactly the tokens that the target would have emitted alone (Leviathan et al. 2023,
    greedy case). Where it is undecided, the node's own token is the next one: chosen, but for the
    next pass to compute again.
    """
    child = {(draft.parents[i], token): i for i, token in enumerate(draft.tokens)}
    path: list[int] = []
    node = ROOT
    while (choice := child.get((node, verdict.choices[1 + node]))) is not None:
        path.append(choice)
        node = choice
    if verdict.choices[1 + node] == UNDECIDED:
        return tuple(path[:-1]), draft.tokens[node]
    return tuple(path), verdict.choices[1 + node]
