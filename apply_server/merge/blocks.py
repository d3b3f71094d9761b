"""Finds before/after blocks by content and replaces them.

Line numbers and context lines only choose among places whose text fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apply_server.errors import AmbiguousTarget, AnchorNotFound, InvalidRequest
from apply_server.line_diff import line_edits
from apply_server.merge.certainty import margins
from apply_server.merge.chain import best_chain
from apply_server.merge.hunks import HunkBuilder
from apply_server.merge.indent import fit, style_of
from apply_server.merge.lines import Lines
from apply_server.merge.model import Anchor, Merge
from apply_server.merge.segments import problem_of
from apply_server.merge.similarity import closest
from apply_server.merge.splice import splice_of
from apply_server.snippet import Block, Edit, Segment

_SURE_COVER = 0.6
_FUZZY_CONFIDENCE = 0.9


@dataclass(frozen=True, slots=True)
class Found:
    """Where a block's `before` is: row → line of the original, between `start` and `end`."""

    start: int
    end: int
    columns: dict[int, int]
    anchor: Anchor
    confidence: float


def merge_blocks(original_lines: Sequence[str], edit: Edit, language: str | None) -> Merge:
    """Apply the blocks of a search/replace, unified diff or V4A edit.

    Raises AmbiguousTarget, AnchorNotFound, and InvalidRequest for blocks that overlap.
    """
    finder = _Finder(Lines(original_lines, language), language, edit.dialect != "search_replace")
    placed = [(block, found) for block in edit.blocks if (found := finder.find(block)) is not None]
    placed.sort(key=lambda entry: (entry[1].start, entry[1].end))
    builder = HunkBuilder(original_lines)
    doubts, at = [], 0
    for block, found in placed:
        if found.start < at:
            raise InvalidRequest(f"Two parts of the edit change line {found.start + 1}.")
        at = found.end
        _write(builder, block, found)
        if found.confidence < _FUZZY_CONFIDENCE:
            doubts.append("Part of the edit was found by similarity only.")
    return builder.merge(doubts)


def _write(builder: HunkBuilder, block: Block, found: Found) -> None:
    """Lines that `before` and `after` share keep the file's text; the others change."""
    original = builder.original
    pairs = [(block.before[row], original[line]) for row, line in found.columns.items()]
    mapping = fit(pairs, style_of(block.before + block.after), style_of(original))
    at, row = found.start, 0
    for edit in line_edits(block.before, block.after):
        at = _after(found, range(row, edit.start), at)
        start = found.columns.get(edit.start, at) if edit.start < edit.end else at
        end = _after(found, range(edit.start, edit.end), start)
        new = [mapping.line(line) for line in edit.lines]
        builder.replace(start, end, new, found.anchor, found.confidence)
        at, row = end, edit.end


def _after(found: Found, rows: range, at: int) -> int:
    return max((found.columns[row] + 1 for row in rows if row in found.columns), default=at)


class _Finder:
    """`ordered`: the blocks come in the file's order, so earlier ones narrow later ones."""

    def __init__(self, original: Lines, language: str | None, ordered: bool) -> None:
        self._original, self._language, self._ordered = original, language, ordered
        self._from = 0

    def find(self, block: Block) -> Found | None:
        """None when the block is already applied."""
        if not block.before:
            return self._insertion(block)
        for anchor, key in _KEYS:
            starts = self._starts(block.before, key)
            if starts:
                start = self._choose(block, starts)
                return self._at(block, start, anchor, 1.0)
        if block.after and self._starts(block.after, "raw"):
            return None
        return self._similar(block)

    def _at(self, block: Block, start: int, anchor: Anchor, confidence: float) -> Found:
        end = start + len(block.before)
        self._from = end
        columns = {row: start + row for row in range(len(block.before))}
        return Found(start, end, columns, anchor, confidence)

    def _starts(self, wanted: Sequence[str], key: str) -> list[int]:
        lines = {"raw": self._original.raw, "text": self._original.text}.get(
            key, self._original.norm
        )
        form = list(_forms(wanted, key, self._language))
        first = next((row for row, line in enumerate(form) if line), 0)
        return [
            at - first
            for at, line in enumerate(lines)
            if line == form[first]
            and at >= first
            and lines[at - first : at - first + len(form)] == form
        ]

    def _choose(self, block: Block, starts: Sequence[int]) -> int:
        """The one start that fits, by the file's end, context, order and line number, in turn."""
        if block.at_end:
            starts = [
                at for at in starts if at + len(block.before) == len(self._original)
            ] or starts
        floor = self._context(block)
        starts = [at for at in starts if at >= floor] or starts
        if len(starts) > 1 and block.hint is not None:
            ranked = sorted(starts, key=lambda at: abs(at - (block.hint or 0)))
            near, next_near = (abs(at - block.hint) for at in ranked[:2])
            if 2 * near < next_near:
                return ranked[0]
        if len(starts) > 1 and block.context and floor:
            return starts[0]
        if len(starts) > 1:
            lines = [at + 1 for at in starts]
            raise AmbiguousTarget(
                f"The text to replace occurs at lines {', '.join(map(str, lines))}: "
                f"{block.before[0].strip()[:80]!r}. Add the lines around it.",
                {"lines": lines, "snippet": block.before[0]},
            )
        return starts[0]

    def _context(self, block: Block) -> int:
        """The line from which the block can start."""
        at = self._from if self._ordered else 0
        for context in block.context:
            places = [
                line
                for line in range(len(self._original))
                if self._original.text[line] == context.strip()
                or self._original.text[line].startswith(context.strip())
            ]
            ahead = [line for line in places if line >= at] or places
            if ahead:
                at = ahead[0] + 1
        return at

    def _insertion(self, block: Block) -> Found:
        floor = self._context(block)
        size = len(self._original)
        if block.hint is not None:
            at = min(size, block.hint)
        elif block.context and floor > 0:
            at = floor
        elif block.at_end or not any(self._original.text):
            at = size
        else:
            raise AnchorNotFound(
                "A part of the edit says what to insert but not where.", {"lines": []}
            )
        return Found(at, at, {}, "edge", 1.0)

    def _similar(self, block: Block) -> Found:
        """The best chain of the block's lines, if most of what they tell is in it."""
        part = Edit("patch", (Segment(block.before),), leading=True, trailing=True)
        splice = splice_of(self._original.raw, part, self._language)
        wanted = splice.snippet
        if not any(wanted.text):
            raise self._not_found(block, wanted)
        problem = problem_of(splice)
        chain = best_chain(problem)
        columns = {problem.matches[at].row: problem.matches[at].column for at in chain.path}
        sure = margins(problem, chain)
        cover = sum(wanted.weight(row, 1) for row in columns)
        total = sum(wanted.weight(row, 1) for row in range(len(wanted)))
        if not columns or cover < _SURE_COVER * total:
            raise self._not_found(block, wanted)
        telling = [sure[row] for row in columns if not wanted.common(row)]
        best = max((margin.confidence for margin in telling), default=0.0)
        if best < 0.3:
            rivals = sorted({line for margin in telling for line in margin.rivals})
            raise AmbiguousTarget(
                "The text to replace is like several places of the file.",
                {"lines": [line + 1 for line in rivals], "snippet": block.before[0]},
            )
        start, end = min(columns.values()), max(columns.values()) + 1
        self._from = end
        spread = end - start - len(columns)
        confidence = min(best, cover / total) * (0.9 if spread else 1.0)
        return Found(start, end, columns, "fuzzy", min(confidence, 0.85))

    def _not_found(self, block: Block, wanted: Lines) -> AnchorNotFound:
        row = next((row for row in range(len(wanted)) if not wanted.common(row)), 0)
        lines = [at + 1 for at in closest(wanted.norm[row], self._original.norm)]
        near = f" The closest lines are {', '.join(map(str, lines))}." if lines else ""
        return AnchorNotFound(
            f"The text to replace is not in the file: {block.before[row].strip()[:80]!r}.{near}",
            {"lines": lines, "snippet": block.before[row]},
        )


_KEYS: tuple[tuple[Anchor, str], ...] = (("exact", "raw"), ("indent", "text"), ("indent", "norm"))


def _forms(lines: Sequence[str], key: str, language: str | None) -> Iterator[str]:
    if key == "raw":
        yield from lines
        return
    view = Lines(lines, language)
    yield from (view.text if key == "text" else view.norm)
