"""A benchmark's rows as a table for people. Must not know how a number came about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from apply_server.bench.modes import Family
from apply_server.bench.report import Measurements, Row
from apply_server.bench.runs import Measured

if TYPE_CHECKING:
    from rich.table import Table

_HEADINGS = (
    "cases",
    "out",
    "passes",
    "tok/pass",
    "drafted/out",
    "prefill s",
    "decode s",
    "drafting",
    "tok/s",
    "vs hf-plain",
    "vs plain",
    "of ρ",
    "identical",
)
HELP = """\
modes:
  plain           apply-server without drafts: one token a pass
  hf-plain        transformers' generate, greedy
  hf-lookup       generate with prompt lookup as transformers sets it up (k=10, n=2)
  hf-lookup-best  generate with every k (tokens drafted) and n (longest n-gram looked up) of the
                  grid; shown is the setting that decoded fastest over all cases
  ours            apply-server as it applies edits (--proposer, --draft-model)
  ours:SPEC       the same with another proposer: ours:suffix, ours:auto+model

  generate runs the stock model (its own linear layers, SDPA attention) from a second copy of the
  weights, in the same number type (transformers has no int8: then in the float
  type that suits the processor), with the same prompt, token cap and end of the answer. It has a
  neutral generation configuration: no sampling, no penalties, whatever the model's files suggest.

columns:
  out          output tokens, the one that ends the answer included
  passes       forward passes that chose tokens; plain decoding needs one for each token
  tok/pass     output tokens per pass
  drafted/out  drafted tokens, accepted or not, per output token; what is above 1 is waste
  prefill s    seconds of reading the prompts; generate's first token comes with it
  decode s     seconds of writing the answers, with all that drafting needs
  drafting     the share of that which finding the drafts takes
  tok/s        output tokens per second of decoding
  vs hf-plain  decode speed-up over generate without drafts
  vs plain     decode speed-up over apply-server without drafts
  of ρ         decode rate over prefill rate: the share of the most that exact decoding could reach,
               as every output token passes through the model once (ρ = prefill rate × time of a
               one-token pass, the bound of the speed-up)
  identical    outputs that are plain decoding's of the same family, token for token. In int8 all
               of ours are; in the float types a block and a single token are rounded differently,
               so near-ties may differ

how long it takes:
  Each case is decoded once in each mode, and in nine settings for hf-lookup-best. On a laptop
  processor 1,000 tokens of a 1.5B model take minutes in the plain modes: start with --limit 2, or
  --lookup-k 64 --lookup-n 2. Ctrl-C prints what has been measured so far.

examples:
  apply-server bench fixtures --only python --limit 2 --modes hf-plain,ours
  apply-server bench fixtures --kind snippet --min-output 600 --json bench.json
  apply-server bench cases.jsonl --modes plain,ours --scripted
"""


def measured_line(measured: Measured) -> str:
    """One run as a line of a log: a benchmark takes minutes, and a pipe shows no bars."""
    run = measured.run
    return (
        f"{measured.case} · {measured.mode.name}: {len(run.output)} tokens in {len(run.passes)} "
        f"passes, {run.prefill_s:.1f} + {run.decode_s:.1f} s"
    )


def table(rows: Iterable[Row]) -> Table:
    """One line for each row, the mode first."""
    from rich.table import Table

    grid = Table(box=None)
    grid.add_column("mode", no_wrap=True)
    for heading in _HEADINGS:
        grid.add_column(heading, justify="right")
    for row in rows:
        grid.add_row(*_cells(row))
    return grid


def notes(facts: Mapping[str, object], measurements: Measurements) -> list[str]:
    """What the figures hold for, and what the formulas said they would be."""
    place = " · ".join(str(facts[name]) for name in ("model", "dtype", "device"))
    versions = f"torch {facts['torch']} · transformers {facts['transformers']}"
    scripted = " · choices by script" if facts["scripted"] else ""
    lines = [f"{place} · {facts['threads']} threads · {versions}{scripted}"]
    for family, whose in ((Family.OURS, "apply-server"), (Family.HF, "generate")):
        rho = measurements.rho(family)
        if rho is not None:
            lines.append(f"ρ of {whose}: {rho:.1f}")
    return lines + [_forecast(row) for row in measurements.rows() if row.totals.drafted_tokens]


def _forecast(row: Row) -> str:
    foreseen = row.prediction
    shares = ", ".join(f"{source} {a} of {d}" for source, (d, a) in row.sources.items())
    sources = f" Accepted by source: {shares}." if shares else ""
    text = (
        f"{_name(row)}: {foreseen.acceptance_rate or 0:.3f} of the drafted tokens were accepted; "
        f"if independently, that would make {foreseen.predicted_tokens_per_pass or 0:.1f} tokens "
        f"per pass"
    )
    if foreseen.modelled_speedup is None:
        return f"{text}.{sources}"
    gain = f"{foreseen.modelled_speedup:.2f}x"
    return f"{text}. By the cost table its passes are {gain} plain's.{sources}"


def _name(row: Row) -> str:
    return f"{row.mode} {row.settings}".strip()


def _cells(row: Row) -> tuple[str, ...]:
    totals = row.totals
    return (
        _name(row),
        str(row.cases),
        str(totals.output_tokens),
        str(totals.passes),
        f"{totals.tokens_per_pass:.1f}",
        f"{totals.drafted_per_output:.2f}",
        f"{totals.prefill_s:.2f}",
        f"{totals.decode_s:.2f}",
        f"{totals.drafting_share:.1%}" if totals.drafted_tokens else "–",
        f"{totals.decode_rate:.1f}",
        _times(row.speedup_over_hf_plain),
        _times(row.speedup_over_plain),
        "–" if row.fraction_of_rho is None else f"{row.fraction_of_rho:.0%}",
        f"{row.identical}/{row.compared}" if row.compared else "–",
    )


def _times(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}x"
