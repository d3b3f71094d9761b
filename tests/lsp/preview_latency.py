"""How long users wait; run by hand: python -m tests.lsp.preview_latency [RUNS [MODEL]]

On a file of 2,000 lines whose snippet's merge is sure: from a request to its preview, with the
model idle and with the model busy in another document; and while it is busy, from a small request
to its answer, beside what the machine itself takes for that: `cat` saying a line back. A scripted
target without a MODEL. Not a test: it says seconds.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.lsp.raw import Client, Spawned, write_answers

URI, OTHER = "file:///w/large.py", "file:///w/other.py"
PING_EVERY_S = 0.05


def large_file(lines: int = 2000) -> str:
    """Functions, no two of them alike."""
    body = "def step_{0}(rows):\n    total = sum(rows) + {0}\n    return total\n\n\n"
    return "".join(body.format(number) for number in range(lines // 5))


SNIPPET = "def step_150(rows):\n    total = sum(rows) - 150\n    return abs(total)\n"


def preview_ms(client: Client, number: int) -> float:
    """From the request to the preview; then the request is cancelled."""
    token = f"preview {number}"
    started = time.perf_counter()
    key = client.start(URI, snippet=SNIPPET, partialResultToken=token)
    client.wait(lambda: client.progress(token))
    waited = (time.perf_counter() - started) * 1000
    client.notify("$/cancelRequest", {"id": key})
    client.response(key)
    return waited


def ping_ms(client: Client) -> float:
    """From a request that needs no work to its response."""
    started = time.perf_counter()
    client.call("applyEdit/stats")
    return (time.perf_counter() - started) * 1000


def echo_ms() -> Callable[[], float]:
    """From a line to a process that does nothing else to the same line back."""
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin
    assert process.stdout
    writer, reader = process.stdin, process.stdout

    def echo() -> float:
        started = time.perf_counter()
        writer.write(b"x\n")
        reader.readline()
        return (time.perf_counter() - started) * 1000

    return echo


def keep_busy(client: Client, small: bool) -> Callable[[], None]:
    """Set the model to work in another document, and wait until it has begun to decode.

    What is returned checks that it still is.
    """
    text = large_file(100 if small else 2000)
    client.open(OTHER, text)
    key = client.start(OTHER, instruction="Rename step_3.", workDoneToken="other")

    def decoding() -> bool:
        return any("tokens/s" in value.get("message", "") for value in client.progress("other"))

    client.wait(lambda: decoding() or key in client.answered)

    def check() -> None:
        assert key not in client.answered, client.answered[key]

    check()
    return check


def measure(runs: int, model: str) -> dict[str, list[float]]:
    """Waits in milliseconds, by what was waited for."""
    text = large_file()
    with tempfile.TemporaryDirectory() as folder:
        answers = write_answers(Path(folder), {"large.py": text, "other.py": text})
        scripted = ("--target", "scripted", "--answers", str(answers), "--pass-delay-ms", "20")
        with Spawned(*(("--model", model) if model else scripted)) as client:
            client.initialize(options={"proposer": "none"})
            client.open(URI, text)
            idle = [preview_ms(client, number) for number in range(runs)]
            check = keep_busy(client, bool(model))
            echo, pings, echoes = echo_ms(), [], []
            for _ in range(10 * runs):
                pings.append(ping_ms(client))
                echoes.append(echo())
                time.sleep(PING_EVERY_S)
            busy = [preview_ms(client, runs + number) for number in range(runs)]
            check()
            return {
                "preview, model idle": idle,
                "preview, model busy": busy,
                "small request, model busy": pings,
                "a line through cat": echoes,
            }


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of them does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    model = sys.argv[2] if len(sys.argv) > 2 else ""
    for what, waits in measure(runs, model).items():
        median, tail = statistics.median(waits), percentile(waits, 0.95)
        sys.stdout.write(
            f"{what}: median {median:.1f} ms, p95 {tail:.1f}, worst {max(waits):.1f}\n"
        )


if __name__ == "__main__":
    main()
