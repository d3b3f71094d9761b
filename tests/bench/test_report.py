"""Runs → rows: sums, ratios over shared cases, ρ, and who is compared with whom."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.console import Console

from apply_server.bench.modes import Family
from apply_server.bench.report import Measurements, Row, report_json
from apply_server.bench.table import HELP, notes, table
from apply_server.decode.speedup import CostTable
from tests.bench.support import HF_PLAIN, OURS, PLAIN, measured, run, tuned

COST = CostTable.synthetic(10.0)
FACTS: dict[str, object] = {
    "model": "tiny", "dtype": "float32", "device": "cpu", "threads": 1, "torch": "2",
    "transformers": "5", "scripted": False,
}  # fmt: skip
OUTPUT = list(range(12))
# Twelve tokens in two passes: all ten drafted ones accepted, then one of four.
DRAFTED = replace(run(OUTPUT, [(9, 10), (4, 2)], decode_s=2.0), propose_s=0.02)
ALL = [
    measured(PLAIN, run(OUTPUT, decode_s=12.0)),
    measured(HF_PLAIN, run(OUTPUT, decode_s=24.0, prefill_s=3.0)),
    measured(tuned(10, 2), run(OUTPUT, [(10, 11), (10, 1)], decode_s=8.0)),
    measured(tuned(64, 3), run(OUTPUT, [(20, 12)], decode_s=6.0)),
    measured(OURS, DRAFTED),
]
TUNED = [tuned(10, 2).name, tuned(64, 3).name]


def measurements(*left_out: str) -> Measurements:
    return Measurements([one for one in ALL if one.mode.name not in left_out], TUNED, COST)


def rows(found: Measurements) -> dict[str, Row]:
    return {row.mode: row for row in found.rows()}


def test_rows_are_the_modes_and_of_the_tuned_ones_the_fastest() -> None:
    found = rows(measurements())
    assert list(found) == ["plain", "hf-plain", "ours", "hf-lookup-best"]
    assert found["hf-lookup-best"].settings == "k=64 n=3"
    assert found["hf-lookup-best"].totals.decode_s == 6.0


def test_a_row_counts_passes_and_tokens() -> None:
    ours = rows(measurements())["ours"]
    assert (ours.cases, ours.totals.output_tokens, ours.totals.passes) == (1, 12, 2)
    assert ours.totals.drafted_tokens == 13
    assert ours.totals.tokens_per_pass == 6.0
    assert ours.totals.drafted_per_output == pytest.approx(13 / 12)
    assert (ours.speedup_over_plain, ours.speedup_over_hf_plain) == (6.0, 12.0)


def test_rho_is_of_a_familys_own_kernels_and_bounds_its_fraction() -> None:
    found = measurements()
    assert found.rho(Family.OURS) == 100.0  # 200 tokens in 2 s, 1 s a pass
    assert found.rho(Family.HF) == pytest.approx(300 / 5 * 2)
    assert rows(found)["ours"].fraction_of_rho == pytest.approx(6 / 100)
    assert rows(found)["hf-lookup-best"].fraction_of_rho == pytest.approx(2 / 60)


def test_what_has_nothing_to_compare_with_says_so() -> None:
    found = measurements("plain", "hf-plain")
    ours = rows(found)["ours"]
    assert found.rho(Family.OURS) is None
    assert (ours.speedup_over_plain, ours.speedup_over_hf_plain) == (None, None)
    assert (ours.identical, ours.compared) == (0, 0)
    assert ours.fraction_of_rho == pytest.approx(6 / 100)
    assert all(each["identical"] is None for each in found.run_rows())


def test_a_family_is_held_against_its_own_plain_run() -> None:
    """The peers' number type may be another one, and then so may their output."""
    theirs = [7, *OUTPUT]
    found = Measurements(
        [
            measured(PLAIN, run(OUTPUT)),
            measured(OURS, run(OUTPUT)),
            measured(HF_PLAIN, run(theirs)),
            measured(tuned(10, 2), run(theirs)),
        ],
        TUNED,
        COST,
    )
    assert [(row.identical, row.compared) for row in found.rows()] == [(1, 1)] * 4


@pytest.mark.parametrize(
    ("output", "at"),
    [([1, 2, 3], None), ([1, 9, 3], 1), ([1, 2], 2), ([1, 2, 3, 4], 3), ([], 0)],
)
def test_outputs_are_compared_token_for_token_with_plain(output: list[int], at: int | None) -> None:
    made = [measured(OURS, run(output)), measured(PLAIN, run([1, 2, 3]))]
    found = Measurements(made, [], COST)
    assert (rows(found)["ours"].identical, rows(found)["ours"].compared) == (at is None, 1)
    (ours,) = [each for each in found.run_rows() if each["mode"] == "ours"]
    assert (ours["identical"], ours["differs_at"]) == (at is None, at)


def test_without_our_plain_run_generates_is_the_reference() -> None:
    made = [measured(OURS, run([1, 2])), measured(HF_PLAIN, run([1, 3]))]
    assert rows(Measurements(made, [], COST))["ours"].identical == 0


def test_speedups_are_over_the_cases_that_both_have() -> None:
    made = [
        measured(PLAIN, run(OUTPUT, decode_s=12.0)),
        measured(OURS, DRAFTED),
        measured(OURS, run(OUTPUT, decode_s=100.0), "interrupted before plain"),
    ]
    ours = rows(Measurements(made, [], COST))["ours"]
    assert (ours.cases, ours.compared, ours.speedup_over_plain) == (2, 1, 6.0)


def test_the_best_lookup_is_chosen_over_cases_that_all_settings_have() -> None:
    made = [
        measured(tuned(10, 2), run(OUTPUT, decode_s=8.0)),
        measured(tuned(10, 2), run(OUTPUT, decode_s=0.1), "b"),
        measured(tuned(64, 3), run(OUTPUT, decode_s=6.0)),
    ]
    assert Measurements(made, TUNED, COST).best() == tuned(64, 3).name
    assert Measurements(made[1:], TUNED, COST).best() is None
    assert Measurements(made[1:], TUNED, COST).rows() == []


def test_nothing_measured_is_an_empty_report() -> None:
    found = Measurements([], TUNED, COST)
    assert report_json(found, {"interrupted": True}) == {
        "interrupted": True,
        "rho": {"ours": None, "hf": None},
        "modes": [],
        "runs": [],
    }


def test_predictions_follow_the_formulas() -> None:
    made = run(range(10), [(4, 5), (4, 2), (4, 3)])
    foreseen = rows(Measurements([measured(OURS, made)], [], COST))["ours"].prediction
    alpha = 7 / 8  # 4, 1 and 2 accepted; one rejected, as the third pass was cut by the end
    assert foreseen.acceptance_rate == pytest.approx(alpha)
    assert foreseen.predicted_tokens_per_pass == pytest.approx((1 - alpha**5) / (1 - alpha))
    assert foreseen.modelled_speedup == pytest.approx(10 / (3 * 1.4))


def test_drafts_that_never_hit_bring_one_token_a_pass() -> None:
    made = [measured(OURS, run(range(3), [(5, 1)] * 3))]
    foreseen = rows(Measurements(made, [], COST))["ours"].prediction
    assert (foreseen.acceptance_rate, foreseen.predicted_tokens_per_pass) == (0.0, 1.0)


def test_plain_decoding_is_modelled_as_itself_and_peers_have_no_cost_table() -> None:
    found = rows(measurements())
    assert found["plain"].prediction.modelled_speedup == 1.0
    assert found["plain"].prediction.acceptance_rate is None
    assert found["hf-lookup-best"].prediction.modelled_speedup is None
    assert found["hf-lookup-best"].prediction.acceptance_rate == 1.0


def test_the_report_is_json_with_a_row_for_each_mode_and_for_each_run() -> None:
    report = json.loads(json.dumps(report_json(measurements(), FACTS)))
    assert report["model"] == "tiny"
    assert report["rho"] == {"ours": 100.0, "hf": 120.0}
    assert [row["mode"] for row in report["modes"]] == ["plain", "hf-plain", "ours",
                                                        "hf-lookup-best"]  # fmt: skip
    assert report["modes"][2]["drafted_tokens"] == 13
    assert [each["mode"] for each in report["runs"]] == [one.mode.name for one in ALL]
    assert report["runs"][3]["lookup"] == {"k": 64, "n": 3}
    assert report["runs"][4] == {
        "id": "a", "mode": "ours", "lookup": None, "prompt_tokens": 100, "output_tokens": 12,
        "passes": 2, "drafted_tokens": 13, "prefill_s": 1.0, "decode_s": 2.0,
        "tokens_per_pass": 6.0, "drafted_per_output": 13 / 12, "tokens_per_s": 6.0,
        "propose_s": 0.02, "drafting_share": 0.01,
        "stopped": True, "identical": True, "differs_at": None,
    }  # fmt: skip


def printed(found: Measurements) -> list[list[str]]:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table(found.rows()))
    return [line.split() for line in capture.get().splitlines()]


def test_the_table_has_the_columns_that_the_help_explains() -> None:
    heading, *lines = printed(measurements())
    section = HELP.partition("columns:\n")[2].partition("\n\n")[0].splitlines()
    explained = [line[2:].split("  ")[0] for line in section if line[2] != " "]
    assert heading == ["mode", "cases", *" ".join(explained).split()]
    assert lines[2] == [
        "ours", "1", "12", "2", "6.0", "1.08", "1.00", "2.00", "1.0%", "6.0", "12.00x", "6.00x",
        "6%", "1/1",
    ]  # fmt: skip


def test_the_table_leaves_open_what_is_not_known() -> None:
    (_, line) = printed(measurements("plain", "hf-plain", *TUNED))
    assert line[-4:] == ["–", "–", "6%", "–"]


def test_notes_name_the_place_rho_and_the_forecasts() -> None:
    assert notes(FACTS, measurements()) == [
        "tiny · float32 · cpu · 1 threads · torch 2 · transformers 5",
        "ρ of apply-server: 100.0",
        "ρ of generate: 120.0",
        "ours: 1.000 of the drafted tokens were accepted; if independently, that would make 7.0 "
        "tokens per pass. By the cost table its passes are 3.64x plain's.",
        "hf-lookup-best k=64 n=3: 1.000 of the drafted tokens were accepted; if independently, "
        "that would make 21.0 tokens per pass.",
    ]
    assert notes({**FACTS, "scripted": True}, measurements())[0].endswith(" · choices by script")
