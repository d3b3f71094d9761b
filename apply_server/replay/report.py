"""Results → one summary. Must not know how cases are run or where a report is printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

from apply_server.engine.base import Report
from apply_server.replay.run import Baseline, Result


def summarise(results: Sequence[Result], target: str, tokenizer: str) -> dict[str, object]:
    """Sums and shares over all cases; rates are of the sums, not means of rates.

    `wrong` counts results that differ from the expected bytes though no error said so.
    """
    total = _total([result.report for result in results])
    exact = sum(result.exact_match for result in results)
    refused = Counter(result.error for result in results if result.error)
    return {
        "target": target,
        "tokenizer": tokenizer,
        "cases": len(results),
        "exact_match": exact,
        "refused": dict(refused),
        "wrong": len(results) - exact - refused.total(),
        "similarity": _mean([result.similarity for result in results]),
        **total.to_json(),
        **_against_plain(results),
    }


def as_json(results: Sequence[Result], summary: dict[str, object]) -> dict[str, object]:
    """The whole report: `{"summary": …, "cases": […]}`."""
    return {"summary": summary, "cases": [result.to_json() for result in results]}


def _total(reports: Sequence[Report]) -> Report:
    divided = ("drafted_by", "accepted_by")
    numbers = [field.name for field in fields(Report) if field.name not in divided]
    return replace(
        Report(*(sum(getattr(report, name) for report in reports) for name in numbers)),
        drafted_by=_by_source(report.drafted_by for report in reports),
        accepted_by=_by_source(report.accepted_by for report in reports),
    )


def _by_source(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def _against_plain(results: Sequence[Result]) -> dict[str, object]:
    pairs: list[tuple[Report, Baseline]] = [
        (result.report, result.baseline) for result in results if result.baseline
    ]
    if not pairs:
        return {}
    plain_s = sum(plain.plain_decode_s for _, plain in pairs)
    ours_s = sum(report.decode_s for report, _ in pairs)
    return {
        "plain_passes": sum(plain.plain_passes for _, plain in pairs),
        "plain_decode_s": plain_s,
        "decode_speedup": plain_s / ours_s if ours_s else 0.0,
        "same_output": all(plain.same_output for _, plain in pairs),
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
