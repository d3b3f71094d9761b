"""What is sent against the specification: pytest-lsp checks it for the clients it knows."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

URI = "file:///w/cart.py"
TEXT = "def total(rows):\n    return sum(rows)  # é😋x\n"
RESULT = TEXT.replace("sum(rows)", "round(sum(rows))")
ANSWERS = Path(tempfile.mkdtemp()) / "answers.json"
COMMAND = ["-m", "apply_server", "serve", "--target", "scripted", "--answers", str(ANSWERS)]


def make_client() -> LanguageClient:
    """A client that takes every edit."""
    client = pytest_lsp.make_test_lsp_client()
    client.edits = []

    @client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def _(params: types.RegistrationParams) -> None: ...

    @client.feature(types.WORKSPACE_APPLY_EDIT)
    def _(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        client.edits.append(params)
        return types.ApplyWorkspaceEditResult(applied=True)

    return client


@pytest_lsp.fixture(
    config=ClientServerConfig(
        server_command=[sys.executable, *COMMAND], client_factory=make_client
    ),
    params=["neovim@v0.11", "visual-studio-code", "emacs"],
)
async def client(request: pytest.FixtureRequest, lsp_client: LanguageClient) -> AsyncIterator[None]:
    ANSWERS.write_text(json.dumps({"cart.py": RESULT}), "utf-8")
    capabilities = client_capabilities(request.param)
    await lsp_client.initialize_session(types.InitializeParams(capabilities=capabilities))
    yield
    await lsp_client.shutdown_session()


@pytest.mark.asyncio
@pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning")
async def test_a_command_as_editors_send_it(client: Any) -> None:
    item = types.TextDocumentItem(URI, "python", 1, TEXT)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    argument = {"textDocument": {"uri": URI, "version": 1}, "instruction": "round it"}
    params = types.ExecuteCommandParams("applyEdit.apply", [argument])
    result = await client.workspace_execute_command_async(params)
    assert result["status"] == "applied"
    (asked,) = client.edits
    changes = asked.edit.document_changes
    edits = changes[0].edits if changes else asked.edit.changes[URI]
    assert [edit.new_text for edit in edits] == ["round(sum(rows)"]
