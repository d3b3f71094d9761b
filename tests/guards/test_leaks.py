"""Text of the conversation in the result: blocked, unless the file or the user has it so."""

from __future__ import annotations

import pytest

from tests.guards.support import PYTHON, found

CHANGED = PYTHON.replace("LIMIT = 10", "LIMIT = 20")
ASK = "Set LIMIT to 20."


def after_limit(line: str) -> str:
    return CHANGED.replace("LIMIT = 20\n", f"LIMIT = 20\n{line}\n")


def test_a_clean_result_passes() -> None:
    assert found(PYTHON, CHANGED, ASK, language="python") == []


@pytest.mark.parametrize(
    "line",
    [
        "# ... existing code ...",
        "# ... rest of the file ...",
        "    # rest of the code remains unchanged",
        "STEP = 2  # ... rest of the settings",
    ],
)
def test_a_marker_written_out_blocks(line: str) -> None:
    assert found(PYTHON, after_limit(line), ASK) == [("leaked-marker", "block", (5,))]


@pytest.mark.parametrize(
    "line",
    [
        "<<<<<<< SEARCH",
        ">>>>>>> REPLACE",
        ">>>>>>>",
        "    @@ -1,2 +1,3 @@",
        "diff --git a/f b/f",
        "*** Begin Patch",
        "*** Update File: f.py",
        "*** End of File",
        "*** End Patch",
    ],
)
def test_a_line_that_frames_an_edit_blocks(line: str) -> None:
    assert ("leaked-marker", "block", (5,)) in found(PYTHON, after_limit(line), ASK, line)
    held = after_limit(line)
    assert found(held, held.replace("LIMIT = 20", "LIMIT = 30"), "Set LIMIT to 30.") == []


def test_a_program_does_not_end_with_fences_though_the_snippet_has_two() -> None:
    snippet = "# ... existing code ...\n```\n```\n"
    final = CHANGED + "```\n```\n"
    verdicts = found(PYTHON, final, "", snippet, language="python")
    assert ("leaked-fence", "block", (len(PYTHON.splitlines()) + 2,)) in verdicts


@pytest.mark.parametrize("fences", [("```", ""), ("```", "~~~"), ("", "```")])
def test_a_fence_that_the_snippet_leaves_open_is_no_text(fences: tuple[str, str]) -> None:
    snippet = "\n".join([*fences[:1], CHANGED.rstrip("\n"), *fences[1:]]).strip("\n") + "\n"
    guards = [name for name, level, _ in found(PYTHON, snippet, "", snippet) if level == "block"]
    assert "leaked-fence" in guards


def test_a_marker_that_the_file_has_may_stay_and_move() -> None:
    original = "# ... existing code ...\na = 1\nb = 2\n"
    assert found(original, "# ... existing code ...\na = 1\nb = 3\n", "Set b to 3.") == []
    assert found(original, "a = 1\nb = 2\n# ... existing code ...\n", "Move the comment.") == []


def test_one_marker_more_than_the_file_has_blocks() -> None:
    original = "# ... existing code ...\na = 1\nb = 2\n"
    final = "# ... existing code ...\na = 1\nb = 3\n# ... existing code ...\n"
    assert found(original, final, "Set b to 3.") == [("leaked-marker", "block", (4,))]


def test_the_snippets_marker_counts_inside_a_line_too() -> None:
    snippet = "# ... keep imports ...\nLIMIT = 20\n"
    final = after_limit("STEP = 2 # ... keep imports ...")
    assert ("leaked-marker", "block", (5,)) in found(PYTHON, final, "", snippet, hunks=((3, 4),))


def test_a_marker_that_the_instruction_spells_out_is_text() -> None:
    line = "# ... existing code ..."
    assert found(PYTHON, after_limit(line), f"{ASK} Below it add `{line}`.") == []


@pytest.mark.parametrize("fence", ["```", "~~~"])
def test_a_fence_around_the_file_blocks(fence: str) -> None:
    final = f"{fence}python\n{CHANGED}{fence}\n"
    last = len(CHANGED.splitlines()) + 2
    assert found(PYTHON, final, ASK) == [("leaked-fence", "block", (1, last))]


def test_a_pair_of_fences_inside_the_file_warns() -> None:
    final = CHANGED.replace("LIMIT = 20\n", 'LIMIT = 20\n"""\n```\nload(path)\n```\n"""\n')
    assert found(PYTHON, final, ASK) == [("leaked-fence", "warn", (6, 8))]


def test_fences_in_markdown_are_text_in_pairs_only() -> None:
    original = "# Guide\n\nRun it.\n"
    paired = original + "\n```sh\nmake\n```\n"
    assert found(original, paired, "Show the command make.", language="markdown") == []
    assert found(original, original + "\n```\n", "Show it.", language="markdown") == [
        ("leaked-fence", "block", (5,))
    ]
    wrapped = f"```markdown\n{original}```\n"
    assert found(original, wrapped, "Show it.", language="markdown") == [
        ("leaked-fence", "block", (1, 5))
    ]


def test_a_fence_that_the_snippet_brings_is_text_but_not_the_one_around_it() -> None:
    inner = '```python\nDOC = """\n```sh\nmake\n```\n"""\nLIMIT = 20\n```\n'
    final = CHANGED.replace("LIMIT = 20\n", 'DOC = """\n```sh\nmake\n```\n"""\nLIMIT = 20\n')
    assert found(PYTHON, final, "", inner, language="python", hunks=((3, 4),)) == []
    around = f"```python\n{CHANGED}```\n"
    snippet = "```python\nLIMIT = 20\n```\n"
    rows = (1, len(CHANGED.splitlines()) + 2)
    assert ("leaked-fence", "block", rows) in found(PYTHON, around, "", snippet, language="python")


@pytest.mark.parametrize(
    "tag", ["<|im_end|>", "<|endoftext|>", "</updated-code>", "<update>", "[INST]", "<｜end｜>"]
)
def test_a_tag_of_the_conversation_blocks(tag: str) -> None:
    final = CHANGED.replace("LIMIT = 20", f"LIMIT = 20{tag}")
    assert found(PYTHON, final, ASK) == [("leaked-fence", "block", (4,))]
    had = PYTHON.replace("import json", f"import json{tag}")
    assert found(had, had.replace("LIMIT = 10", "LIMIT = 20"), ASK) == []
    assert found(PYTHON, final, f"{ASK} Append {tag} to it.") == []


def test_a_code_element_inside_a_line_of_html_is_text() -> None:
    original = "<p>Run it.</p>\n<p>Wait.</p>\n"
    inline = "<p>Run <code>make</code>.</p>\n<p>Wait.</p>\n"
    assert found(original, inline, "Say: Run make.", language="html") == []
    alone = "<code>\n" + original
    assert ("leaked-fence", "block", (1,)) in found(original, alone, "Say: Run make.")


def test_thoughts_block() -> None:
    final = f"<think>\nThe limit is 20.\n</think>\n{CHANGED}"
    assert found(PYTHON, final, ASK) == [("leaked-thinking", "block", (1, 3))]
    assert found("a\n", "a\nTAG = '<think>'\n", "Add TAG = '<think>'.") == []


@pytest.mark.parametrize(
    "speech",
    [
        "Explanation of changes:",
        "### Summary of the changes",
        "I've updated the limit.",
        "Here is the updated code:",
        "Let me know if you need more.",
    ],
)
def test_words_to_the_user_after_the_file_block(speech: str) -> None:
    last = len(CHANGED.splitlines()) + 2
    final = f"{CHANGED}\n{speech}\n1. LIMIT is 20.\n"
    assert ("leaked-prose", "block", (last,)) in found(PYTHON, final, ASK, language="python")


def test_words_to_the_user_before_the_file_block_but_only_warn_in_prose() -> None:
    final = f"Here's the updated file:\n\n{CHANGED}"
    assert ("leaked-prose", "block", (1,)) in found(PYTHON, final, ASK, language="python")
    text = "One.\nTwo.\n"
    notes = f"{text}\nSummary of changes\n"
    assert found(text, notes, "Summarise.", language="markdown") == [("leaked-prose", "warn", (4,))]
    assert found(text, notes, "Add the line: Summary of changes") == []


def test_such_words_in_the_middle_of_a_file_are_its_own() -> None:
    assert found(PYTHON, after_limit("Explanation of changes = 1"), ASK) == []
