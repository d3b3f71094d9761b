"""Changes outside a snippet's hunks, or far from what an instruction names."""

from __future__ import annotations

from tests.guards.support import PYTHON, found

LAZY = "# ... existing code ...\nLIMIT = 20\n# ... existing code ...\n"
CHANGED = PYTHON.replace("LIMIT = 10", "LIMIT = 20")


def test_a_change_inside_the_hunks_or_right_beside_them_passes() -> None:
    assert found(PYTHON, CHANGED, "", LAZY, hunks=((3, 4),)) == []
    final = CHANGED.replace("import sys\n", "import sys as system\n")
    assert found(PYTHON, final, "", LAZY, hunks=((3, 4),)) == []


def test_lines_lost_elsewhere_block() -> None:
    final = CHANGED.replace("    for order in orders:\n", "").replace(
        '        amount += order["price"]\n', ""
    )
    assert found(PYTHON, final, "", LAZY, hunks=((3, 4),)) == [("outside-hunks", "block", (14, 15))]


def test_each_place_is_a_finding() -> None:
    final = CHANGED.replace("amount = 0", "amount = 1").replace('"total:"', '"sum:"')
    assert found(PYTHON, final, "", LAZY, hunks=((3, 4),)) == [
        ("outside-hunks", "block", (13,)),
        ("outside-hunks", "block", (21,)),
    ]


def test_a_changed_indentation_elsewhere_blocks() -> None:
    final = CHANGED.replace("    amount = 0", "  amount = 0")
    assert found(PYTHON, final, "", LAZY, hunks=((3, 4),)) == [("outside-hunks", "block", (13,))]


def test_changed_lines_that_the_edit_has_a_word_of_warn() -> None:
    final = CHANGED.replace("amount = 0", "amount = 1")
    snippet = LAZY + "    return amount\n"
    warned = [("outside-hunks", "warn", (13,))]
    assert found(PYTHON, final, "", snippet, hunks=((3, 4),)) == warned


def test_what_the_instruction_beside_a_snippet_names_passes() -> None:
    final = CHANGED.replace("amount = 0", "amount = 1")
    assert found(PYTHON, final, "Start amount at 1.", LAZY, hunks=((3, 4),)) == []


def test_moved_and_added_lines_elsewhere_warn() -> None:
    block = (
        "def load(path):\n    with open(path) as stream:\n        return json.load(stream)\n\n\n"
    )
    moved = CHANGED.replace(block, "").replace("def main", f"{block}def main")
    assert ("outside-hunks", "block") not in [
        (name, level) for name, level, _ in found(PYTHON, moved, "", LAZY, hunks=((3, 4),))
    ]
    added = CHANGED.replace("    return amount\n", "    log(amount)\n    return amount\n")
    assert found(PYTHON, added, "", LAZY, hunks=((3, 4),)) == [("outside-hunks", "warn", (15,))]


def test_blank_lines_elsewhere_pass() -> None:
    final = CHANGED.replace("\n\n\ndef report", "\n\ndef report")
    assert found(PYTHON, final, "", LAZY, hunks=((3, 4),)) == []


def test_an_instruction_can_only_warn() -> None:
    final = CHANGED.replace('"total:"', '"sum:"')
    assert found(PYTHON, final, "Set LIMIT to 20.") == [("outside-hunks", "warn", (21,))]


def test_the_body_of_what_an_instruction_names_belongs_to_it() -> None:
    final = PYTHON.replace("    return amount", "    return round(amount, 2)")
    assert found(PYTHON, final, "Make total round its result.") == []


def test_new_code_far_from_what_an_instruction_names_passes() -> None:
    final = CHANGED.replace("def main", "def check():\n    return LIMIT\n\n\ndef main")
    assert found(PYTHON, final, "Set LIMIT to 20 and add check.") == []


def test_an_instruction_that_names_nothing_near_any_change_tells_nothing() -> None:
    assert found(PYTHON, PYTHON.replace('"total:"', '"sum:"'), "Fix json.") == []
    assert found(PYTHON, PYTHON.replace('"total:"', '"sum:"'), "Verschönern.") == []
