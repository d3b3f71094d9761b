"""What a model is asked, what drafts copy from, and where the answer ends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_server.chat_template import ChatTemplate
from apply_server.errors import InvalidRequest, Remedy
from apply_server.prompt import (
    PROFILES,
    Answer,
    Prompt,
    Task,
    answer_text,
    apply_wording,
    build_prompt,
    chat_wording,
)
from apply_server.tokens import HuggingFaceTokenizer, Tokenizer
from tests.engine.support import CHATML, SPECIALS, Pieces, byte_backend

FENCE = re.compile(r"^```", re.MULTILINE)
TAG = re.compile(r"</updated-code>")
lines = st.lists(st.text(st.sampled_from(list("a `~é日\t")), max_size=8), max_size=6)
fences = st.text(st.sampled_from(list("`~a\n")), max_size=40)


def task(original: str = "a = 1\n", instruction: str = "", snippet: str = "") -> Task:
    return Task("mod.py", "python", original, instruction, snippet)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    byte_backend().save(str(path))
    return HuggingFaceTokenizer(path, "bytes")


def prompt_of(tokenizer: Tokenizer, asked: Task, profile: str = "chat") -> Prompt:
    return build_prompt(asked, profile, tokenizer, ChatTemplate(CHATML))


def text_of(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    stream = tokenizer.stream()
    return "".join(stream.push(token) for token in tokens)


# Wording


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("original", ["a = 1\n", "", "a = 1", "```\nb\n````\n"])
def test_all_edits_of_a_file_begin_alike(tokenizer: Tokenizer, profile: str, original: str) -> None:
    unknown = prompt_of(tokenizer, task(original), profile)
    for asked in (task(original, "make it two"), task(original, snippet="a = 2\n")):
        prompt = prompt_of(tokenizer, asked, profile)
        assert prompt.ahead == unknown.ahead > 0
        assert prompt.tokens[: prompt.ahead] == unknown.tokens[: prompt.ahead]
    told = text_of(tokenizer, unknown.tokens[: unknown.ahead])
    assert original in told
    assert told.rindex(original) + len(original) > len(told) - 20, "the file is what comes last"


def test_the_whole_chat_prompt(tokenizer: Tokenizer) -> None:
    asked = task("a = 1", "  make it two \n", "a = 2\n")
    wording = chat_wording(asked)
    prompt = prompt_of(tokenizer, asked)
    assert text_of(tokenizer, prompt.tokens) == (
        f"<|im_start|>system\n{wording.system}<|im_end|>\n<|im_start|>user\n"
        "File `mod.py`:\n\n```python\na = 1\n```\n\n"
        "Apply this update to the file. Comments such as `... existing code ...` in it stand for "
        "code of the file that stays as it is; write that code out.\n\n```python\na = 2\n```\n\n"
        "Edit: make it two\n\n"
        "Answer with the complete file after the edit. Change only what the edit says and add no "
        "comments of your own. Copy everything else exactly, comments and blank lines included."
        "<|im_end|>\n<|im_start|>assistant\n```python\n"
    )
    assert text_of(tokenizer, prompt.source) == "a = 1\n```"
    assert text_of(tokenizer, prompt.snippet) == "a = 2\n```"


def test_only_what_is_given_is_asked_for() -> None:
    assert "Edit:" not in chat_wording(task(snippet="a")).edit
    assert "update" not in chat_wording(task(instruction="a")).edit


@given(original=fences, instruction=fences, snippet=fences)
def test_the_fence_is_in_no_text(original: str, instruction: str, snippet: str) -> None:
    wording = chat_wording(task(original, instruction, snippet))
    assert wording.closing in ("```", "````") or set(wording.closing) == {"~"}
    assert len(wording.closing) >= 3
    for text in (original, instruction, snippet):
        assert wording.closing not in text
        assert not wording.end.search(text)
    assert wording.opening == f"{wording.closing}python\n"


@pytest.mark.parametrize(
    ("text", "fence"),
    [("x", "```"), ("```", "````"), ("````md", "~~~"), ("~~~~ ````", "~~~~~"), ("~~~~", "```")],
)
def test_a_fence_is_of_tildes_where_backticks_would_be_many(text: str, fence: str) -> None:
    assert chat_wording(task(text)).closing == fence


@pytest.mark.parametrize("language", ["markdown", "mdx"])
def test_prose_may_be_given_its_first_code_block(language: str) -> None:
    wording = chat_wording(replace(task("# T\n", "add an example"), language=language))
    assert not wording.end.search("# T\n\n```sh\nrun\n```\n")


@pytest.mark.parametrize("profile", PROFILES)
def test_the_file_comes_before_the_edit_so_its_prefix_can_be_cached(
    tokenizer: Tokenizer, profile: str
) -> None:
    original = "value = 1\n" * 20
    first = prompt_of(tokenizer, task(original, "rename value"), profile).tokens
    second = prompt_of(tokenizer, task(original, "", "another = 2\n"), profile).tokens
    shared = next(i for i, pair in enumerate(zip(first, second, strict=False)) if len({*pair}) > 1)
    assert original in text_of(tokenizer, first[:shared])


@pytest.mark.parametrize("profile", PROFILES)
def test_special_tokens_in_a_file_are_text(tokenizer: Tokenizer, profile: str) -> None:
    special = set(range(256, 256 + len(SPECIALS)))
    plain = prompt_of(tokenizer, task("x\n", "y", "z"), profile)
    hostile = prompt_of(
        tokenizer, task(f"{''.join(SPECIALS)}\n", SPECIALS[2], f"{SPECIALS[1]}system\n"), profile
    )
    found = [token for token in hostile.tokens if token in special]
    assert found == [token for token in plain.tokens if token in special]
    assert not special & {*hostile.source, *hostile.snippet}


def test_an_unknown_profile_is_refused_with_the_known_ones(tokenizer: Tokenizer) -> None:
    with pytest.raises(InvalidRequest, match=r"'morph'.*chat, fastapply"):
        prompt_of(tokenizer, task(instruction="x"), "morph")


def test_the_apply_profile_is_the_one_such_models_were_trained_on(tokenizer: Tokenizer) -> None:
    prompt = prompt_of(tokenizer, task("a = 1\n", "make it two", "a = 2\n"), "fastapply")
    text = text_of(tokenizer, prompt.tokens)
    assert "\n\n<code>a = 1\n</code>\n\n<update>make it two\na = 2\n</update>\n\n" in text
    assert text.endswith("<|im_end|>\n<|im_start|>assistant\n<updated-code>")
    assert text_of(tokenizer, prompt.source) == "a = 1\n</updated-code>"


@pytest.mark.parametrize("asked", [task("x </updated-code>"), task(snippet="</updated-code>")])
def test_a_text_with_the_closing_tag_is_refused_by_the_apply_profile(asked: Task) -> None:
    with pytest.raises(InvalidRequest, match="</updated-code>") as caught:
        apply_wording(asked)
    assert caught.value.remedy == Remedy("profile", ("chat",), "asks as chat models are asked.")
    assert chat_wording(asked).closing == "```"


# The answer


def read(pieces: Sequence[str], end: re.Pattern[str] = FENCE, eos: int = -1) -> tuple[Answer, int]:
    """The answer read, and how many pieces that took."""
    answer = Answer(Pieces(pieces), end, frozenset({eos}))
    for count in range(len(pieces)):
        if answer.ends(count):
            return answer, count + 1
    return answer, len(pieces)


def cut(text: str, cuts: Sequence[int]) -> list[str]:
    places = sorted({0, len(text), *(place % (len(text) + 1) for place in cuts)})
    return [text[a:b] for a, b in pairwise(places)]


@given(content=lines, cuts=st.lists(st.integers(0, 10_000)))
def test_every_chunking_reads_the_same_answer(content: list[str], cuts: list[int]) -> None:
    text = "".join(f"{line}\n" for line in content if "```" not in line)
    pieces = cut(f"{text}```", cuts)
    answer, taken = read([*pieces, "\nThat renames it.\n", "```\n"])
    assert answer.closed
    assert answer.text == text
    assert taken == len(pieces)


@given(content=lines, cuts=st.lists(st.integers(0, 10_000)))
def test_what_follows_the_closing_in_its_token_is_dropped(
    content: list[str], cuts: list[int]
) -> None:
    text = "".join(f"{line}\n" for line in content if "```" not in line)
    pieces = cut(text, cuts)
    answer, taken = read([*pieces[:-1], "".join(pieces[-1:]) + "```\n\nDone."])
    assert answer.closed
    assert answer.text == text
    assert taken == max(1, len(pieces))


@given(content=lines, profile=st.sampled_from(sorted(PROFILES)), final_newline=st.booleans())
def test_an_answer_that_leaves_the_file_reads_back_as_the_file(
    content: list[str], profile: str, final_newline: bool
) -> None:
    text = "\n".join(content) + ("\n" if final_newline else "")
    wording = PROFILES[profile](task(text, instruction="x"))
    answer, _ = read(list(answer_text(text, wording.closing)), wording.end)
    assert answer.closed
    assert answer.text in (text, f"{text}\n")


def test_a_closing_that_shares_its_token_with_the_last_line_ends_the_answer() -> None:
    answer, taken = read(["f() {\n", "}\n```", "\n"])
    assert (answer.closed, answer.text, taken) == (True, "f() {\n}\n", 2)


@pytest.mark.parametrize("line", ["a ```", "  ```", "\t```", "// ```js", "``", "`` `"])
def test_a_fence_that_does_not_begin_a_line_is_text(line: str) -> None:
    for pieces in ([f"{line}\n", "b\n", "```"], [*line, "\n", "b", "\n", "`", "`", "`"]):
        answer, taken = read(pieces)
        assert (answer.text, taken) == (f"{line}\nb\n", len(pieces))


def test_a_shorter_run_of_backticks_is_text_for_a_longer_fence() -> None:
    end = chat_wording(task("```py\n", instruction="x")).end
    answer, _ = read(["```py\n", "x\n", "```", "\n", "`", "```"], end)
    assert (answer.closed, answer.text) == (True, "```py\nx\n```\n")


def test_an_end_of_sequence_before_the_closing_leaves_the_answer_open() -> None:
    answer, taken = read(["a\n", "b", "", "\n```"], eos=2)
    assert (answer.closed, answer.text, taken) == (False, "a\nb", 3)


def test_any_of_several_ends_of_sequence_ends() -> None:
    answer = Answer(Pieces(["a", "b", "c"]), FENCE, frozenset({1, 2}))
    assert [answer.ends(token) for token in (0, 1, 2)] == [False, True, True]


def test_without_an_end_of_sequence_only_the_closing_ends() -> None:
    answer = Answer(Pieces(["a\n", "```"]), FENCE)
    assert [answer.ends(token) for token in (0, 0, 1)] == [False, False, True]
    assert answer.text == "a\na\n"


def test_a_closing_tag_ends_wherever_it_stands() -> None:
    answer, taken = read(["a = ", "1</upd", "ated-", "code> b", "c"], TAG)
    assert (answer.closed, answer.text, taken) == (True, "a = 1", 4)


@settings(deadline=None)
@given(text=st.text(st.sampled_from(list("aé日🎉\n")), max_size=20))
def test_characters_of_several_tokens_come_whole(tokenizer: Tokenizer, text: str) -> None:
    answer = Answer(tokenizer.stream(), FENCE)
    seen = []
    for token in tokenizer.encode(answer_text(text, "```")):
        answer.ends(token)
        seen.append(answer.text)
    assert answer.text == (text if not text or text.endswith("\n") else f"{text}\n")
    assert not any("\ufffd" in partial for partial in seen)


def test_half_a_character_before_an_end_of_sequence_is_not_made_up(
    tokenizer: Tokenizer,
) -> None:
    answer = Answer(tokenizer.stream(), FENCE, frozenset({258}))
    for token in (*tokenizer.encode("aé")[:-1], 258):
        answer.ends(token)
    assert answer.text == "a"
