"""The server with real weights: loaded once, streamed, the same as on the command line."""

from __future__ import annotations

from threading import Event

import pytest

from apply_server.config import EngineConfig
from apply_server.document import Document
from apply_server.engine.base import Done
from apply_server.engine.build import build_engine
from apply_server.errors import ApplyError
from apply_server.models import Report
from apply_server.request import EditRequest
from tests.lsp.raw import Client, Spawned, edited

MODEL = "smollm2-135m-instruct"
TEXT = "def total(rows):\n    return sum(rows)\n"
INSTRUCTION = "Rename the function total to add_up."
URI = "file:///w/cart.py"


def on_the_command_line() -> str:
    """The text after the edit, or the code of the refusal."""
    config = EngineConfig(MODEL, device="cpu", dtype="float32")
    request = EditRequest(Document.from_text(TEXT), "cart.py", INSTRUCTION, language="python")
    try:
        *_, done = build_engine(config, Report()).run(request, Event())
    except ApplyError as error:
        return error.code
    assert isinstance(done, Done)
    return done.text


def in_the_editor(client: Client) -> str:
    response = client.apply(URI, instruction=INSTRUCTION, partialResultToken="p", workDoneToken="w")
    if "error" in response:
        code: str = response["error"]["data"]["code"]
        return code
    return edited(TEXT, response["result"]["edits"])


@pytest.mark.weights
def test_the_editor_gets_what_the_command_line_gets() -> None:
    with Spawned() as client:
        client.initialize(options={"model": MODEL, "device": "cpu", "dtype": "float32"})
        client.open(URI, TEXT)
        assert in_the_editor(client) == on_the_command_line()
        messages = [value.get("message", "") for value in client.progress("w")]
        assert any("Loading the model" in message for message in messages)
        assert any("tokens/s" in message for message in messages)
        assert [value["kind"] for value in client.progress("p")].count("verified") >= 1
        again = in_the_editor(client)
        assert again == on_the_command_line()
        loads = [value for value in client.progress("w") if "Loading" in value.get("message", "")]
        assert len(loads) == 1, "weights are loaded once"
        assert client.exit() == 0
        assert "Traceback" not in client.errors.text
