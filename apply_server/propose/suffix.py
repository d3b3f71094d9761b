"""A suffix automaton over tokens, and drafting from its longest match.

The automaton (Blumer et al. 1985) is online: it takes one token at a time, in O(1) amortised, and
always knows the longest suffix of its text that occurred before. Everything lives in flat arrays.
Must not know what the tokens mean or which source matters more.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from apply_server.decode.draft import NO_DRAFT, Draft, Step
from apply_server.propose.continuation import Continuation, Source
from apply_server.propose.priors import PRIORS
from apply_server.propose.survival import bucket

ROOT_STATE = 0
NONE = -1


@dataclass(frozen=True, slots=True)
class Match:
    """The `length` last tokens of the text also occur ending just before position `next`."""

    length: int
    next: int


# A state is five numbers in one array, and its name is the index of the first.
LENGTH, LINK, END, CHILD, EDGES, STATE_SIZE = range(6)
# An edge likewise; NEXT is the next edge of the same state.
SOURCE, TOKEN, TARGET, NEXT, EDGE_SIZE = range(5)


class _Edges:
    """Transitions (state, token) → state: an open-addressing hash table over a flat array.

    The edges of one state also form a list, newest first, so that a clone can copy them. The hash
    is small on purpose: numbers of more than 30 bits are slower.
    """

    __slots__ = ("_mask", "_slots", "data")

    def __init__(self) -> None:
        self.data = array("i")
        self._mask = 63
        self._slots = array("i", [NONE]) * 64

    def find(self, state: int, token: int) -> int:
        """The edge, or NONE."""
        data, slots, mask = self.data, self._slots, self._mask
        at = (state * 31 + token * 1009) & mask
        while (edge := slots[at]) >= 0:
            if data[edge] == state and data[edge + TOKEN] == token:
                return edge
            at = (at + 1) & mask
        return NONE

    def add(self, state: int, token: int, target: int, following: int) -> int:
        """Add an edge that isn't there yet in front of the state's list; returns it."""
        edge = len(self.data)
        if 3 * edge > 2 * EDGE_SIZE * self._mask:
            self._grow()
        self.data.extend((state, token, target, following))
        slots, mask = self._slots, self._mask
        at = (state * 31 + token * 1009) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = edge
        return edge

    def _grow(self) -> None:
        data, mask = self.data, 2 * self._mask + 1
        slots = array("i", [NONE]) * (mask + 1)
        for edge in range(0, len(data), EDGE_SIZE):
            at = (data[edge] * 31 + data[edge + TOKEN] * 1009) & mask
            while slots[at] >= 0:
                at = (at + 1) & mask
            slots[at] = edge
        self._mask, self._slots = mask, slots


class SuffixAutomaton:
    """The longest repeated suffix of a growing text, in at most 80 bytes per token.

    Every state but the newest has an outgoing edge for the token after its first occurrence, so
    that edge needs no entry of its own: CHILD holds its target and the text holds its token.
    """

    __slots__ = ("_edges", "_last", "_states", "text")

    def __init__(self, tokens: Iterable[int] = ()) -> None:
        self.text = array("i")
        self._states = array("i", (0, NONE, 0, NONE, NONE))
        self._edges = _Edges()
        self._last = ROOT_STATE
        self.extend(tokens)

    def extend(self, tokens: Iterable[int]) -> None:
        """Append tokens to the text."""
        for token in tokens:
            self.append(token)

    def append(self, token: int) -> None:
        """Append one token to the text; a state for the whole text, and its suffixes' edges."""
        text, states, edges = self.text, self._states, self._edges
        text.append(token)
        newest = len(states)
        states.extend((len(text), ROOT_STATE, len(text), NONE, NONE))
        states[self._last + CHILD] = newest
        state = states[self._last + LINK]
        self._last = newest
        while state != NONE:
            if text[states[state + END]] == token:
                states[newest + LINK] = self._exact(state, token, states[state + CHILD])
                return
            edge = edges.find(state, token)
            if edge != NONE:
                states[newest + LINK] = self._exact(state, token, edges.data[edge + TARGET])
                return
            states[state + EDGES] = edges.add(state, token, newest, states[state + EDGES])
            state = states[state + LINK]

    def match(self) -> Match:
        """The longest suffix of the text that occurs earlier in it, at its first occurrence."""
        state = max(self._states[self._last + LINK], ROOT_STATE)
        return Match(self._states[state + LENGTH], self._states[state + END])

    def _exact(self, state: int, token: int, target: int) -> int:
        """The state of the suffix `state` + `token` and nothing longer: the target or a clone."""
        states = self._states
        length = states[state + LENGTH] + 1
        if states[target + LENGTH] == length:
            return target
        clone = self._clone(target, length)
        while state != NONE and self._redirect(state, token, target, clone):
            state = states[state + LINK]
        return clone

    def _clone(self, state: int, length: int) -> int:
        states, edges = self._states, self._edges
        clone = len(states)
        states.extend((length, *states[state + LINK : state + EDGES], NONE))
        states[state + LINK] = clone
        edge = states[state + EDGES]
        while edge != NONE:
            _, token, target, following = edges.data[edge : edge + EDGE_SIZE]
            states[clone + EDGES] = edges.add(clone, token, target, states[clone + EDGES])
            edge = following
        return clone

    def _redirect(self, state: int, token: int, old: int, new: int) -> bool:
        """Point the state's edge at `new` if it leads to `old`."""
        states, edges = self._states, self._edges
        if self.text[states[state + END]] == token:
            data, at = states, state + CHILD
        else:
            data, at = edges.data, edges.find(state, token) + TARGET
        if data[at] != old:
            return False
        data[at] = new
        return True


class SuffixSource:
    """The longest match of the output's suffix in `texts` and in the output itself.

    Where it occurs several times the first one counts, so `texts` come most trusted first.
    """

    def __init__(self, texts: Iterable[Sequence[int]]) -> None:
        self._automaton = SuffixAutomaton()
        # A separator of its own ends each text, so no match runs across two of them.
        for separator, text in zip(count(-1, -1), texts, strict=False):
            self._automaton.extend(text)
            self._automaton.append(separator)

    def continuations(self, context: Sequence[int]) -> Iterator[Continuation]:
        """The longest match, if there is one."""
        match = self._automaton.match()
        if match.length:
            yield Continuation(self._automaton.text, match.next, match.length, "suffix")

    def observe(self, emitted: Sequence[int]) -> None:
        """Index what was emitted."""
        self._automaton.extend(emitted)


class ChainProposer:
    """Drafts a source's first continuation as far as the limit goes."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def propose(self, context: Sequence[int], limit: int) -> Draft:
        """The continuation up to the end of its text."""
        for found in self._source.continuations(context):
            tokens = found.text[found.at : found.at + max(limit, 0)]
            length = next((i for i, token in enumerate(tokens) if token < 0), len(tokens))
            trust = PRIORS[found.source][bucket(found.match)]
            return Draft.chain(tokens[:length], score=trust, source="copy")
        return NO_DRAFT

    def observe(self, step: Step) -> None:
        """Let the source follow the output."""
        self._source.observe(step.emitted)
