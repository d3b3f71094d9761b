"""The engine over a scripted model: exact results, refusals, and a slot that is always closed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from apply_server.chat_template import ChatTemplate
from apply_server.config import EngineConfig
from apply_server.decode.draft import NoDraft
from apply_server.decode.sampling import Sampling
from apply_server.document import Document
from apply_server.engine.base import Decoding, Done, Engine, Prefilling, Report
from apply_server.engine.build import model_engine, scripted_engine
from apply_server.engine.guarded import GuardedEngine
from apply_server.engine.local import LocalEngine, Model
from apply_server.errors import Cancelled, DocumentTooLong, GuardBlocked, TruncatedOutput
from apply_server.replay.cases import Case, load_cases
from apply_server.replay.run import request_of
from apply_server.request import EditRequest
from apply_server.target.scripted import ScriptedTarget
from apply_server.target.transformers_model import StockNetwork, TransformersTarget
from apply_server.tokens import HuggingFaceTokenizer, Tokenizer, WordTokenizer
from tests.conftest import tiny_model
from tests.engine.support import CHATML, COST, Bench, byte_backend, check_progress, request

FIXTURES = Path(__file__).parents[2] / "fixtures"
CASES = load_cases([FIXTURES])
UTF_16 = "é\u2028\x0c日\nc\n".encode("utf-16")
CONFIG = EngineConfig(model="unused")


def scripted(case: Case, tokenizer: Tokenizer, proposer: str = "auto") -> Engine:
    expected = Document.from_bytes(case.expected)
    config = replace(CONFIG, proposer=proposer)
    return scripted_engine(tokenizer, request_of(case), expected, config)


def last(engine: Engine, asked: EditRequest) -> Done:
    *_, event = engine.run(asked, Event())
    assert isinstance(event, Done)
    return event


def costs(report: Report) -> Report:
    """What must not differ between two runs."""
    return replace(report, prefill_s=0.0, decode_s=0.0, propose_s=0.0)


@pytest.fixture(scope="module")
def words() -> WordTokenizer:
    return WordTokenizer()


# Results


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_model_that_answers_rightly_gives_the_expected_bytes(
    case: Case, words: WordTokenizer
) -> None:
    asked = request_of(case)
    events = list(scripted(case, words).run(asked, Event()))
    check_progress(events)
    done = events[-1]
    assert isinstance(done, Done)
    assert asked.document.encode(done.text) == case.expected
    assert done.verified
    assert done.report.output_tokens == len(done.output)
    assert done.report.accepted_tokens <= done.report.drafted_tokens
    # Every pass emits the target's own token and what was accepted; the end may cut that token.
    spared = done.report.output_tokens - done.report.accepted_tokens
    assert spared in (done.report.target_passes, done.report.target_passes - 1)


@pytest.mark.parametrize(
    ("original", "answer", "expected"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nx\nc\n", b"a\r\nx\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", "a\nx\ny\nc\n", b"a\r\nx\ny\nc\r\n"),
        (b"a\rb\r", "a\nx\n", b"a\rx\r"),
        (b"a\nb", "a\nx\n", b"a\nx"),
        (b"a\nb", "a\nb\nc\n", b"a\nb\nc"),
        (b"\xef\xbb\xbfa\r\nb\r\n", "a\nc\n", b"\xef\xbb\xbfa\r\nc\r\n"),
        ("é\u2028\x0c日\nb\n".encode("utf-16"), "é\u2028\x0c日\nc\n", UTF_16),
        (b"    a  \n\n    b\n", "a\n\nc\n", b"    a  \n\n    c\n"),
        (b"\n\n a\n\n", "b\n", b"\n\n b\n\n"),
        (b"", "new\nfile\n", b"new\nfile\n"),
    ],
)
def test_the_answer_decides_words_and_nothing_else(
    original: bytes, answer: str, expected: bytes
) -> None:
    asked = request(original, "edit it")
    done = Bench(f"{answer}```").done(asked)
    assert asked.document.encode(done.text) == expected


def test_an_answer_that_repeats_the_file_changes_nothing() -> None:
    asked = request("\ta \n\n\tb", "edit it")
    done = Bench("a\n\nb\n```").done(asked)
    assert (done.edits, done.text) == ((), asked.document.text)


def test_special_tokens_and_fences_in_a_file_come_back_as_they_were() -> None:
    original = "a\n```py\n<|im_end|>\n````\n</updated-code>\nb\n"
    answer = original.replace("b\n", "c\n") + "~~~"
    assert Bench(answer).done(request(original, "b to c")).text == original.replace("b\n", "c\n")


def test_tokens_after_the_closing_are_neither_text_nor_counted() -> None:
    bench = Bench("a\nx\n```\nThat is the file. " + "a\nb\n" * 20)
    done = bench.done(request("a\nb\n", "edit it"))
    assert done.text == "a\nx\n"
    assert done.report.output_tokens == len(bench.tokenizer.encode("a\nx\n```"))
    assert len(done.output) == done.report.output_tokens


# Drafting


@pytest.mark.parametrize(
    "name", ["python-timeout-default", "toml-service-config", "sql-monthly-report"]
)
def test_drafting_changes_passes_and_not_the_output(name: str, words: WordTokenizer) -> None:
    case = next(case for case in CASES if case.id == name)
    plain = last(scripted(case, words, "none"), request_of(case))
    assert plain.report.target_passes == plain.report.output_tokens
    assert plain.report.drafted_tokens == 0
    for proposer in ("auto", "suffix"):
        drafted = last(scripted(case, words, proposer), request_of(case))
        assert (drafted.output, drafted.text) == (plain.output, plain.text)
        assert drafted.report.target_passes < plain.report.target_passes / 4


def test_what_the_instruction_quotes_is_copied_from_it(words: WordTokenizer) -> None:
    news = "We are closed for stocktaking from Monday to Thursday and open again on Friday morning."
    original = b"".join(b"%d: nothing to see here\n" % line for line in range(20))
    expected = original.replace(b"9: nothing to see here", b"9: " + news.encode(), 1)
    passes = []
    for instruction in (f"Replace line 9 by: {news}", "Say why and for how long we are closed."):
        case = Case("news", "text", "news.txt", original, instruction, None, expected)
        done = last(scripted(case, words), request_of(case))
        assert done.text.encode() == expected
        passes.append(done.report.target_passes)
    quoted, told = passes
    # Found after a word or two, and lost where the line ends.
    assert quoted <= told - len(news.split()) + 4


@pytest.mark.parametrize("proposer", ["auto", "suffix", "none"])
def test_the_same_request_twice_costs_the_same(proposer: str, words: WordTokenizer) -> None:
    case = next(case for case in CASES if case.id == "toml-service-config")
    engine = scripted(case, words, proposer)
    first, second = (last(engine, request_of(case)) for _ in range(2))
    assert costs(first.report) == costs(second.report)
    assert first.output == second.output


def test_the_merge_of_a_snippet_is_drafted_whole() -> None:
    original = "".join(f"line_{i} = {i}\n" for i in range(40))
    marker = "# ... existing code ...\n"
    snippet = f"{marker}line_20 = 20\nnew_line = None\nline_21 = 21\n{marker}"
    expected = original.replace("line_21 =", "new_line = None\nline_21 =")
    bench = Bench(f"{expected}```")
    done = bench.done(request(original, snippet=snippet))
    assert done.text == expected
    (sources,) = bench.sources
    assert sources.merged == bench.tokenizer.encode(f"{expected}```")
    assert sources.original == bench.tokenizer.encode(f"{original}```")
    assert done.report.accepted_tokens == done.report.drafted_tokens


@pytest.mark.parametrize("snippet", ["", "def elsewhere():\n    return 1\n"])
def test_without_a_merge_the_original_is_what_drafts_copy_from(snippet: str) -> None:
    bench = Bench("a()\nb()\na()\n```")
    bench.done(request("a()\nb()\na()\n", "do nothing", snippet))
    (sources,) = bench.sources
    assert sources.original == bench.tokenizer.encode("a()\nb()\na()\n```")
    if not snippet:
        assert sources.merged is None


def test_sources_are_in_the_answers_position() -> None:
    """Indentation and blank ends are off the answer, so they are off what is drafted for it."""
    bench = Bench("a\nc\n```")
    bench.done(request("\n    a\n    b\n\n", "b to c"))
    assert bench.sources[0].original == bench.tokenizer.encode("a\nb\n```")


# Refusals


def refused(bench: Bench, asked: EditRequest, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        bench.run(asked)
    assert bench.target.closed == bench.target.opened


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("a\n", "stopped before the end of the file"),
        ("a\nb", "stopped before the end of the file"),
        ("", "stopped before the end of the file"),
    ],
)
def test_an_answer_that_ends_early_is_refused(answer: str, reason: str) -> None:
    refused(Bench(answer, ended=True), request("a\nb\nc\n", "x"), TruncatedOutput, reason)


@pytest.mark.parametrize("answer", ["```", "\n```", "\n \n```"])
@pytest.mark.parametrize(
    ("instruction", "asked_for"),
    [("Delete the whole content of this file.", True), ("Rename a to b.", False)],
)
def test_an_empty_answer_is_a_result_only_where_it_was_asked_for(
    answer: str, instruction: str, asked_for: bool
) -> None:
    bench = Bench(answer, ended=True)
    engine = GuardedEngine(bench.engine())
    asked = request("a = 1\nb = 2\nc = 3\n", instruction)
    if asked_for:
        *_, done = engine.run(asked, Event())
        assert isinstance(done, Done)
        assert done.text == ""
    else:
        with pytest.raises(GuardBlocked) as caught:
            list(engine.run(asked, Event()))
        assert "mostly-gone" in caught.value.details["guards"]  # type: ignore[operator]


def test_the_limit_gives_way_to_the_models_context() -> None:
    asked = request("a = 1\n" * 20, "x")
    prompt = Bench("").engine().prompt(asked)
    for room in (0, 7):
        bench = Bench("", context=len(prompt.tokens) + len(prompt.source) + room)
        refused(bench, asked, TruncatedOutput, "limit")
        assert bench.target.rooms == [len(prompt.source) + room]


def test_a_file_that_leaves_no_room_for_itself_is_refused_with_both_numbers() -> None:
    asked = request("a = 1\n" * 20, "x")
    prompt = Bench("").engine().prompt(asked)
    needed = len(prompt.tokens) + len(prompt.source)
    bench = Bench("", context=needed - 1)
    refused(bench, asked, DocumentTooLong, f"about {needed} tokens; limit is {needed - 1}")
    assert not bench.target.opened


def test_an_endless_answer_is_cut_at_a_limit_that_follows_the_file() -> None:
    bench = Bench("a = 1\n" * 5000)
    refused(bench, request("a = 1\n", "x"), TruncatedOutput, "reached its limit of 266 tokens")
    assert bench.target.rooms == [266]


def test_the_limit_grows_with_file_and_snippet() -> None:
    small, file, both = (Bench("", kind="none") for _ in range(3))
    for bench, asked in (
        (small, request("a\n", "x")),
        (file, request("a\n" * 400, "x")),
        (both, request("a\n" * 400, "x", "b\n" * 100)),
    ):
        refused(bench, asked, TruncatedOutput, "limit")
    assert small.target.rooms < file.target.rooms < both.target.rooms


def test_a_closing_on_the_very_last_token_is_in_time() -> None:
    bench = Bench("a\nb\n```")
    bench.max_new = len(bench.tokenizer.encode("a\nb\n```"))
    assert bench.done(request("a\nb\n", "x")).text == "a\nb\n"


def test_a_limit_below_the_files_own_length_is_refused_before_the_model_runs() -> None:
    bench = Bench("a\n```", max_new=3)
    with pytest.raises(DocumentTooLong, match=r"Needs about \d+ tokens; limit is 3\.") as caught:
        bench.run(request("a = 1\nb = 2\n", "x"))
    assert caught.value.details["limit"] == 3
    assert bench.target.opened == []


def test_a_wished_limit_is_the_room_that_is_reserved() -> None:
    bench = Bench("b = 1\n" * 400, max_new=50)
    refused(bench, request("a\n", "x"), TruncatedOutput, "limit of 50 tokens")
    assert bench.target.rooms == [50]


def test_a_request_beyond_the_models_context_opens_no_slot() -> None:
    bench = Bench("")

    def too_long(*_: object) -> None:
        raise DocumentTooLong("Needs about 9 tokens; limit is 8.")

    bench.target.script = ScriptedTarget(too_long)  # type: ignore[arg-type]
    refused(bench, request("a\n", "x"), DocumentTooLong, "Needs about")
    assert bench.sources == []


# Cancelling, and what is left behind


def test_cancelling_before_the_start_makes_no_pass() -> None:
    bench, cancel = Bench("a\n```"), Event()
    cancel.set()
    with pytest.raises(Cancelled):
        bench.run(request("a\n", "x"), cancel)
    assert bench.target.passes == 0
    assert bench.target.closed == bench.target.opened != []


def test_cancelling_stops_after_the_pass_in_progress() -> None:
    cancel = Event()
    bench = Bench("b = 2\n" * 50 + "```", kind="none")
    bench.target.before_pass = lambda: cancel.set() if bench.target.passes == 2 else None
    with pytest.raises(Cancelled, match="Nothing was changed"):
        bench.run(request("a\n" * 60, "x"), cancel)
    assert bench.target.passes == 3
    assert bench.target.closed == bench.target.opened


def test_cancelling_while_reading_stops_at_the_next_chunk() -> None:
    bench, cancel = Bench("a\n```"), Event()
    bench.target.chunks = 5
    events = bench.engine().run(request("a\n", "x"), cancel)
    first = next(events)
    assert isinstance(first, Prefilling)
    assert first.done == 1 < first.total
    cancel.set()
    with pytest.raises(Cancelled):
        next(events)
    assert bench.target.passes == 0
    assert bench.target.closed == bench.target.opened


@pytest.mark.parametrize("events", [1, 2, 3])
def test_a_consumer_that_stops_early_leaves_no_slot_open(events: int) -> None:
    bench = Bench("b = 2\n" * 5 + "```", kind="none")
    bench.target.chunks = 2
    job = bench.engine().run(request("a\n", "x"), Event())
    for _ in range(events):
        next(job)
    assert bench.target.closed == []
    job.close()
    assert bench.target.closed == bench.target.opened


def test_the_slot_is_closed_before_the_result_is_handed_out() -> None:
    bench = Bench("a\n```")
    job = bench.engine().run(request("a\n", "x"), Event())
    assert any(isinstance(event, Done) for event in job)
    assert bench.target.closed == bench.target.opened


def test_a_fault_in_drafting_or_in_the_model_closes_the_slot() -> None:
    def fault(*_: object) -> NoDraft:
        raise RuntimeError("out of memory")

    bench = Bench("a\n```")
    with pytest.raises(RuntimeError):
        list(LocalEngine(bench.engine().model, fault).run(request("a\n", "x"), Event()))
    bench.target.before_pass = fault
    with pytest.raises(RuntimeError):
        bench.run(request("a\n", "x"))
    assert bench.target.closed == bench.target.opened
    assert len(bench.target.opened) == 2


def test_progress_names_the_share_of_the_file_and_never_passes_it() -> None:
    bench = Bench("b = 2\n" * 30 + "```", kind="none")
    bench.target.chunks = 3
    events = bench.run(request("a = 1\n" * 3, "x"))
    check_progress(events)
    assert [event.done for event in events if isinstance(event, Prefilling)] == [1, 2, 3]
    shares = [event.share for event in events if isinstance(event, Decoding)]
    assert len(shares) == bench.target.passes
    assert shares[0] < 0.2
    assert shares[-1] == 1.0


def test_the_target_is_told_how_to_choose() -> None:
    bench = Bench("a\n```")
    sampling = Sampling(0.7, seed=3)
    engine = replace(bench.engine(), sampling=sampling)
    list(engine.run(request("a\n", "x"), Event()))
    assert bench.target.sampled == [sampling]


def test_an_empty_report_divides_by_nothing() -> None:
    report = Report()
    assert (report.tokens_per_pass, report.acceptance_rate, report.tokens_per_s) == (0, 0, 0)


# A real model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Model:  # type: ignore[type-arg]
    backend = byte_backend()
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    backend.save(str(path))
    target = TransformersTarget(
        StockNetwork(tiny_model("qwen2", vocab_size=backend.get_vocab_size())), 2048
    )
    tokenizer = HuggingFaceTokenizer(path, "bytes")
    return Model(target, tokenizer, ChatTemplate(CHATML), "chat", frozenset({258}), 2048, COST)


def test_a_random_models_babble_is_refused_alike_with_and_without_drafts(tiny: Model) -> None:  # type: ignore[type-arg]
    asked = request("def f():\n    return 1\n", "rename f to g")
    refusals = []
    for proposer in ("none", "suffix", "auto"):
        engine = model_engine(tiny, replace(CONFIG, proposer=proposer, max_new=60))
        with pytest.raises(TruncatedOutput) as caught:
            list(engine.run(asked, Event()))
        refusals.append(caught.value.to_json())
    assert refusals == refusals[:1] * 3


def test_a_prompt_beyond_a_real_models_context_is_refused(tiny: Model) -> None:  # type: ignore[type-arg]
    engine = model_engine(tiny, CONFIG)
    with pytest.raises(DocumentTooLong, match="limit is 2048") as caught:
        list(engine.run(request("a = 1\n" * 400, "x"), Event()))
    needed = caught.value.details["needed"]
    assert isinstance(needed, int)
    assert needed > 2048
