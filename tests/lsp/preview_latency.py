"""How long users wait for a preview; run by hand: python -m tests.lsp.preview_latency [RUNS]

Prints the median over the runs, on a file of 2,000 lines whose snippet's merge is sure, with the
model idle and with the model busy in another document. Not a test: it says seconds.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.lsp.raw import Client, Spawned, write_answers

URI, OTHER = "file:///w/large.py", "file:///w/other.py"


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


def measure(runs: int, pass_delay_ms: int = 20) -> dict[str, list[float]]:
    """Waits in milliseconds, by what the model was doing."""
    text = large_file()
    with tempfile.TemporaryDirectory() as folder:
        answers = write_answers(Path(folder), {"large.py": text, "other.py": text})
        options = ("--target", "scripted", "--answers", str(answers))
        with Spawned(*options, "--pass-delay-ms", str(pass_delay_ms)) as client:
            client.initialize(options={"proposer": "none"})
            client.open(URI, text)
            client.open(OTHER, text)
            idle = [preview_ms(client, number) for number in range(runs)]
            client.start(OTHER, instruction="x", partialResultToken="other")
            client.wait(lambda: client.progress("other"))
            busy = [preview_ms(client, runs + number) for number in range(runs)]
            return {"idle": idle, "busy": busy}


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    for state, waits in measure(runs).items():
        median, worst = statistics.median(waits), max(waits)
        sys.stdout.write(f"model {state}: median {median:.0f} ms, worst {worst:.0f} ms\n")


if __name__ == "__main__":
    main()
