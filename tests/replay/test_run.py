"""Replay: what a row says, and that the summary is of the sums."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event

import pytest

from apply_server.document import Document
from apply_server.engine.base import Decoding, Done, Engine, EngineEvent, Report
from apply_server.errors import Cancelled, TruncatedOutput
from apply_server.replay.cases import Case
from apply_server.replay.report import as_json, summarise
from apply_server.replay.run import Baseline, Result, replay, request_of
from apply_server.request import EditRequest

OURS = Report(100, 40, 4, 60, 36, 0, 1.5, 2.0, 0.25, 8.0, {"copy": 60}, {"copy": 36})
PLAIN = Report(100, 40, 40, 0, 0, 0, 1.5, 8.0, 0.0, 40.0)


@dataclass
class Answers:
    """An engine with a known answer, or an error."""

    text: str = ""
    report: Report = OURS
    error: BaseException | None = None
    output: tuple[int, ...] = (1, 2)
    runs: int = 0

    def run(self, request: EditRequest, cancel: Event) -> Iterator[EngineEvent]:
        self.runs += 1
        yield Decoding(0.5, 10.0, 0.9)
        if self.error:
            raise self.error
        yield Done((), self.text, self.report, output=self.output)


def case(expected: bytes = b"b\r\n", original: bytes = b"a\r\n", instruction: str = "x") -> Case:
    return Case("one", "python", "original.py", original, instruction, None, expected)


def result(engine: Engine, recorded: Case | None = None, plain: Engine | None = None) -> Result:
    baseline = (lambda request, expected: plain) if plain else None
    (only,) = replay([recorded or case()], lambda request, expected: engine, baseline)
    return only


def test_a_row_has_every_field_of_a_report() -> None:
    row = result(Answers("b\r\n"), plain=Answers("b\r\n", PLAIN)).to_json()
    assert row == {
        "id": "one",
        "exact_match": True,
        "similarity": 1.0,
        "verified": True,
        "prompt_tokens": 100,
        "output_tokens": 40,
        "target_passes": 4,
        "drafted_tokens": 60,
        "accepted_tokens": 36,
        "arbitrations": 0,
        "prefill_s": 1.5,
        "decode_s": 2.0,
        "propose_s": 0.25,
        "modelled_cost": 8.0,
        "drafted_by": {"copy": 60},
        "accepted_by": {"copy": 36},
        "cached_tokens": 0,
        "tokens_per_pass": 10.0,
        "acceptance_rate": 0.6,
        "drafted_per_output": 1.5,
        "modelled_speedup": 5.0,
        "tokens_per_s": 20.0,
        "plain_passes": 40,
        "plain_decode_s": 8.0,
        "decode_speedup": 4.0,
        "same_output": True,
    }


@pytest.mark.parametrize(
    ("text", "exact"), [("b\r\n", True), ("b\n", False), ("b", False), ("c\r\n", False)]
)
def test_exact_means_the_same_bytes(text: str, exact: bool) -> None:
    assert result(Answers(text)).exact_match is exact


def test_similarity_is_of_the_texts() -> None:
    assert result(Answers("abcd"), case(b"abxd")).similarity == 0.75


def test_the_file_keeps_its_byte_order_mark() -> None:
    assert result(Answers("b"), case(b"\xef\xbb\xbfb", b"\xef\xbb\xbfa")).exact_match


def test_a_refusal_is_a_row_with_its_code() -> None:
    row = result(Answers(error=TruncatedOutput("stopped"))).to_json()
    assert (row["error"], row["message"], row["exact_match"]) == (
        "TruncatedOutput",
        "stopped",
        False,
    )
    assert row["similarity"] == row["output_tokens"] == 0


@pytest.mark.parametrize(
    ("recorded", "code"),
    [
        (case(original=b"\xff\xfe\xff"), "UnsupportedEncoding"),
        (case(instruction=" "), "InvalidRequest"),
    ],
)
def test_a_case_that_makes_no_request_is_a_row_too(recorded: Case, code: str) -> None:
    engine = Answers()
    assert result(engine, recorded).error == code
    assert engine.runs == 0


@pytest.mark.parametrize("error", [Cancelled("stop"), KeyboardInterrupt()])
def test_cancelling_ends_the_replay(error: BaseException) -> None:
    with pytest.raises(type(error)):
        result(Answers(error=error))


def test_results_come_one_by_one() -> None:
    engine = Answers("b\r\n")
    results = replay([case(), case()], lambda request, expected: engine)
    next(results)
    assert engine.runs == 1


def test_the_engine_is_told_the_request_and_the_expected_document() -> None:
    told: list[tuple[EditRequest, Document]] = []

    def engine_for(request: EditRequest, expected: Document) -> Engine:
        told.append((request, expected))
        return Answers("b\r\n")

    list(replay([case()], engine_for))
    assert told == [(request_of(case()), Document.from_bytes(b"b\r\n"))]


def test_other_output_than_plain_is_seen() -> None:
    compared = result(Answers("b\r\n", output=(1, 3)), plain=Answers("b\r\n", PLAIN)).baseline
    assert compared is not None
    assert not compared.same_output


def test_a_summary_is_of_the_sums_and_counts_wrong_apart_from_refused() -> None:
    fast = Result(
        "a",
        True,
        1.0,
        Report(10, 90, 1, 89, 89, 2, 1.0, 1.0, 0.0, 10.0, {"copy": 89}, {"copy": 89}),
        baseline=Baseline(90, 9.0, 9.0, True),
    )
    slow = Result(
        "b",
        False,
        0.5,
        Report(10, 10, 9, 11, 1, 1, 1.0, 3.0, 0.0, 30.0, {"copy": 1, "merge": 10}, {"merge": 1}),
        baseline=Baseline(10, 3.0, 1.0, False),
    )
    refused = Result("c", False, 0.0, error="TruncatedOutput")
    summary = summarise([fast, slow, refused], "scripted", "words")
    assert summary == {
        "target": "scripted",
        "tokenizer": "words",
        "cases": 3,
        "exact_match": 1,
        "refused": {"TruncatedOutput": 1},
        "wrong": 1,
        "similarity": 0.5,
        "prompt_tokens": 20,
        "output_tokens": 100,
        "target_passes": 10,
        "drafted_tokens": 100,
        "accepted_tokens": 90,
        "arbitrations": 3,
        "prefill_s": 2.0,
        "decode_s": 4.0,
        "propose_s": 0.0,
        "modelled_cost": 40.0,
        "drafted_by": {"copy": 90, "merge": 10},
        "accepted_by": {"copy": 89, "merge": 1},
        "cached_tokens": 0,
        "tokens_per_pass": 10.0,
        "acceptance_rate": 0.9,
        "drafted_per_output": 1.0,
        "modelled_speedup": 2.5,
        "tokens_per_s": 25.0,
        "plain_passes": 100,
        "plain_decode_s": 12.0,
        "decode_speedup": 3.0,
        "same_output": False,
    }


def test_a_report_is_one_json_document_with_a_row_for_each_case() -> None:
    results = [Result("a", True, 1.0), Result("b", False, 0.0, error="InvalidRequest", message="é")]
    report = json.loads(json.dumps(as_json(results, summarise(results, "scripted", "words"))))
    assert [row["id"] for row in report["cases"]] == ["a", "b"]
    assert report["summary"]["cases"] == 2
    assert "plain_passes" not in report["summary"]


def test_no_results_make_an_empty_summary() -> None:
    summary = summarise([], "scripted", "words")
    assert (summary["cases"], summary["similarity"], summary["tokens_per_pass"]) == (0, 0.0, 0.0)
