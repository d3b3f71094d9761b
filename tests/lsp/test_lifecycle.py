"""From start to end: the handshake, every way to end, and a wire that nothing else touches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.lsp.raw import (
    PATIENCE_S,
    Client,
    Listening,
    Spawned,
    edited,
    environment,
    serve_command,
    start_process,
    wait_until,
    write_answers,
)

URI = "file:///w/slow.py"
TEXT = "".join(f"value_{number} = {number}\n" for number in range(200))
RESULT = TEXT.replace("value_7 = 7\n", "value_7 = 'seven'\n")


@pytest.fixture
def slow(tmp_path: Path) -> tuple[str, ...]:
    """Options of a server whose model is busy for a long time."""
    answers = write_answers(tmp_path, {"slow.py": RESULT})
    return ("--target", "scripted", "--answers", str(answers), "--pass-delay-ms", "50")


def busy(*options: str, env: dict[str, str] | None = None, process: int | None = None) -> Spawned:
    """A client with a job that the model is at work on."""
    client = Spawned(*options, env=env)
    client.initialize(options={"proposer": "none"}, process=process)
    client.open(URI, TEXT)
    client.start(URI, instruction="x", partialResultToken="p")
    client.wait(lambda: client.progress("p"))
    return client


def test_before_initialize_and_after_shutdown_nothing_else_works() -> None:
    with Spawned() as client:
        assert client.call("applyEdit/stats")["error"]["code"] == -32002
        client.notify("textDocument/didOpen", {"nonsense": True})
        client.initialize()
        assert client.call("initialize", {"capabilities": {}})["error"]["code"] == -32600
        assert client.call("no/such")["error"]["code"] == -32601
        assert client.call("shutdown")["result"] is None
        assert client.call("applyEdit/stats")["error"]["code"] == -32600
        client.notify("exit")
        assert client.process.wait(PATIENCE_S) == 0
        assert client.errors.text == ""


@pytest.mark.parametrize("buffered", ["", "1"])
def test_exit_with_work_in_flight(slow: tuple[str, ...], buffered: str) -> None:
    with busy(*slow, env=environment(PYTHONUNBUFFERED=buffered)) as client:
        assert client.exit() == 0
        assert client.answered[2]["error"]["data"]["code"] == "Cancelled"
        assert client.errors.text == ""


def test_exit_without_shutdown_is_an_error(slow: tuple[str, ...]) -> None:
    with busy(*slow) as client:
        client.notify("exit")
        assert client.process.wait(PATIENCE_S) == 1
        assert "Traceback" not in client.errors.text


def test_a_closed_pipe_ends_it(slow: tuple[str, ...]) -> None:
    with busy(*slow) as client:
        assert client.process.stdin is not None
        client.process.stdin.close()
        assert client.process.wait(PATIENCE_S) == 1
        assert "Traceback" not in client.errors.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_cancels_and_ends_it(slow: tuple[str, ...], number: signal.Signals) -> None:
    with busy(*slow) as client:
        client.process.send_signal(number)
        assert client.process.wait(PATIENCE_S) == 128 + number
        assert "Traceback" not in client.errors.text


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_killed_client_takes_the_server_with_it_although_the_pipe_stays_open(
    slow: tuple[str, ...],
) -> None:
    """The client's children may hold its end of the pipe, as here this test does."""
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with busy(*slow, process=owner.pid) as client:
        owner.kill()
        assert client.process.wait(PATIENCE_S) == 1
        assert "Traceback" not in client.errors.text
    owner.wait()


def test_a_client_killed_with_its_pipes_takes_the_server_with_it(tmp_path: Path) -> None:
    script = tmp_path / "client.py"
    command = serve_command("--stdio")
    script.write_text(
        "import subprocess, sys, time\n"
        f"server = subprocess.Popen({command!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(server.pid, flush=True)\ntime.sleep(600)\n"
    )
    client = start_process([sys.executable, str(script)])
    assert client.stdout is not None
    server = int(client.stdout.readline())
    client.kill()
    client.wait()
    wait_until(lambda: not running(server))


def running(process: int) -> bool:
    """Whether it still runs; one that only waits to be fetched by its parent doesn't."""
    try:
        state = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_client_that_never_reads_stops_nothing_but_itself(tmp_path: Path) -> None:
    """Over the pipe's size of progress: the loop goes on, and the end is not waited for."""
    answers = write_answers(tmp_path, {"slow.py": RESULT})
    options = ("--target", "scripted", "--answers", str(answers))
    with Spawned(*options, reads=False) as client:
        params = {"processId": None, "rootUri": None, "capabilities": {}}
        client.request("initialize", {**params, "initializationOptions": {"proposer": "none"}})
        for count in range(20):
            client.open(f"file:///w/{count}/slow.py", TEXT)
            client.start(f"file:///w/{count}/slow.py", instruction="x", partialResultToken="p")
        client.notify("exit")
        assert client.process.wait(PATIENCE_S) == 1
        assert "Traceback" not in client.errors.text


def test_what_others_print_or_read_does_not_touch_the_wire(tmp_path: Path) -> None:
    """A model library that prints, in Python and below it, and one that reads standard input."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys, threading\n"
        "def noise():\n"
        "    import time\n"
        "    while True:\n"
        "        time.sleep(0.02)\n"
        "        print('from Python', flush=True)\n"
        "        os.write(1, b'from below\\n')\n"
        "        os.read(0, 10)\n"
        "def begin():\n"
        "    import time\n"
        "    while b'stderr' not in os.readlink('/proc/self/fd/1').encode() and (\n"
        "        os.readlink('/proc/self/fd/1') != os.readlink('/proc/self/fd/2')\n"
        "    ):\n"
        "        time.sleep(0.01)\n"
        "    noise()\n"
        "threading.Thread(target=begin, daemon=True).start()\n"
    )
    path = f"{tmp_path}{os.pathsep}{environment()['PYTHONPATH']}"
    with Spawned(env={**environment(), "PYTHONPATH": path}) as client:
        client.initialize()
        wait_until(lambda: "from below" in client.errors.text)
        for _ in range(20):
            assert "result" in client.call("applyEdit/stats")
            time.sleep(0.01)
        assert client.exit() == 0
        assert "from Python" in client.errors.text


def test_settings_are_asked_for_and_bad_ones_told_once() -> None:
    asked = []

    def answer(request: dict[str, object]) -> object:
        asked.append(request["method"])
        return [{"verify": "sometimes"}] if request["method"] == "workspace/configuration" else None

    dynamic = {"didChangeConfiguration": {"dynamicRegistration": True}, "configuration": True}
    with Spawned() as client:
        client.answer = answer
        client.initialize({"workspace": dynamic}, options={"timeoutMs": -1})
        client.wait(lambda: len(client.of("window/showMessage")) == 2)
        client.notify("workspace/didChangeConfiguration", {"settings": None})
        client.wait(lambda: asked.count("workspace/configuration") == 2)
        client.call("applyEdit/stats")
        messages = [item["message"] for item in client.of("window/showMessage")]
        assert messages == [
            "applyEdit.timeoutMs must be a whole number from 0 on; the default is used.",
            "applyEdit.verify must be one of 'always', 'whenAmbiguous', 'never'; "
            "the default is used.",
        ]
        assert "client/registerCapability" in asked
        assert client.exit() == 0


def test_a_model_that_cannot_be_loaded_is_told_with_a_remedy_and_tried_again(
    tmp_path: Path,
) -> None:
    model = str(tmp_path / "no-model.gguf")
    with Spawned(env=environment(HF_HUB_OFFLINE="1")) as client:
        client.initialize(options={"model": model, "warmUp": True})
        client.wait(lambda: client.of("window/showMessage"))
        (shown,) = client.of("window/showMessage")
        assert shown["type"] == 1
        assert shown["message"].startswith("ModelUnavailable: ")
        client.open(URI, TEXT)
        for _ in range(2):
            error = client.apply(URI, instruction="x")["error"]
            assert error["data"]["code"] == "ModelUnavailable"
            assert model in error["message"]
        snippet = "<<<<<<< SEARCH\nvalue_7 = 7\n=======\nvalue_7 = 'seven'\n>>>>>>> REPLACE\n"
        done = client.apply(URI, snippet=snippet, options={"verify": "never"})["result"]
        assert edited(TEXT, done["edits"]) == RESULT
        assert client.exit() == 0


def test_web_sockets_carry_the_same_messages() -> None:
    from websockets.exceptions import InvalidStatus
    from websockets.sync.client import connect

    process = start_process(serve_command("--ws", "127.0.0.1:0"))
    assert process.stderr is not None
    url = process.stderr.readline().decode().split()[-1]
    initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}
    for _ in range(2):  # one client after the other
        with connect(url) as socket:
            socket.send(json.dumps(initialize))
            assert json.loads(socket.recv())["result"]["serverInfo"]["name"] == "apply-server"
    with pytest.raises(InvalidStatus, match="403"):
        connect(url, origin="https://example.com")  # type: ignore[arg-type]
    process.terminate()
    assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert b"Traceback" not in process.stderr.read()


def test_many_clients_reach_one_listening_server() -> None:
    server = Listening()
    clients: list[Client] = [server.connect() for _ in range(3)]
    for client in clients:
        client.initialize()
    clients[0].shut_down()
    clients[0].wait(lambda: clients[0].closed)
    assert "result" in clients[1].call("applyEdit/stats")
    assert server.stop() == 128 + signal.SIGTERM
    assert "Traceback" not in server.errors.text


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:", "127.0.0.1:99999", ":x"])
def test_a_bad_address_is_a_usage_error(address: str) -> None:
    done = subprocess.run(
        serve_command("--tcp", address), capture_output=True, env=environment(), check=False
    )
    assert done.returncode == 2
    assert b"is no address" in done.stderr
