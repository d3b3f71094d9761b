"""The language server of one client: LSP's messages to what serves them, and nothing else.

Must not know what carries the messages, nor how an edit is computed.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Generator
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import lsp_method

from apply_server import __version__, models
from apply_server.errors import ApplyError, DocumentChanged
from apply_server.lsp import convert, protocol
from apply_server.lsp.actions import TITLE, edit_in
from apply_server.lsp.client import Client
from apply_server.lsp.documents import changed
from apply_server.lsp.jobs import Job, cancelled
from apply_server.lsp.params import apply_params, cancel_params, prepare_params
from apply_server.lsp.progress import WorkDone
from apply_server.lsp.protocol import ApplyOptions, to_json
from apply_server.lsp.rpc import RpcProtocol, converter, settle
from apply_server.lsp.service import Backend, Outcome, Service
from apply_server.lsp.settings import Settings, spelled, update
from apply_server.lsp.uris import DocumentUri
from apply_server.lsp.workspace_edit import apply_edit_params

NOTEBOOKS = types.NotebookDocumentSyncOptions(
    notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")]
)


class ApplyProtocol(RpcProtocol):
    """Handlers by LSP's names."""

    _server: ApplyLanguageServer

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.client = Client(self)
        self.service = Service(self._server.backend, self.client, self._server.defaults)
        self._told: set[str] = set()
        self._background: set[asyncio.Task[None]] = set()
        self.fm.feature_options[types.TEXT_DOCUMENT_CODE_ACTION] = types.CodeActionOptions(
            code_action_kinds=[types.CodeActionKind.RefactorRewrite]
        )
        self.fm.commands[protocol.APPLY_COMMAND] = self._apply_command
        self.fm.commands[protocol.CANCEL_COMMAND] = self._cancel_command
        self.fm.commands[protocol.STATS_COMMAND] = self._stats_command

    # Life cycle

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, Any]:
        """Take the client's capabilities and settings."""
        self.client.capabilities = params.capabilities
        self.client.trace = params.trace.value if params.trace else "off"
        result = yield from super().lsp_initialize(params)
        encoding = self.workspace.position_encoding
        self.service.documents.encoding = types.PositionEncodingKind(encoding).value
        self._configure(params.initialization_options)
        return result

    @lsp_method(types.INITIALIZED)
    async def lsp_initialized(self, *args: Any) -> None:
        """Now the client may be asked for its settings."""
        if self.client.can("workspace.did_change_configuration.dynamic_registration"):
            registration = types.Registration(
                protocol.SECTION, types.WORKSPACE_DID_CHANGE_CONFIGURATION,
                {"section": protocol.SECTION},
            )  # fmt: skip
            self._aside(
                self.client.ask(
                    types.CLIENT_REGISTER_CAPABILITY, types.RegistrationParams([registration])
                )
            )
        await self._pull_configuration()
        if self.service.settings.warm_up:
            await self._warm_up()

    @lsp_method(types.SHUTDOWN)
    async def lsp_shutdown(self, *args: Any) -> None:  # type: ignore[override]
        """Stop all jobs first: their workers are to notice too."""
        self.service.jobs.stop_all()
        await super().lsp_shutdown(*args)

    @lsp_method(types.SET_TRACE)
    def lsp_set_trace(self, params: types.SetTraceParams) -> Generator[Any, Any, None]:
        """See LSP."""
        yield from ()
        self.client.trace = params.value.value

    # Settings

    @lsp_method(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(self, params: types.DidChangeConfigurationParams) -> None:
        """Clients send the settings along, or expect to be asked for them."""
        self._configure(params.settings)
        await self._pull_configuration()

    async def _pull_configuration(self) -> None:
        if not self.client.can("workspace.configuration"):
            return
        items = types.ConfigurationParams([types.ConfigurationItem(section=protocol.SECTION)])
        try:
            answer = await self.client.ask(types.WORKSPACE_CONFIGURATION, items)
        except JsonRpcException as error:
            self.client.log(f"The settings could not be read: {error.message}")
            return
        self._configure(answer[0] if answer else None)

    def _configure(self, values: object) -> None:
        self.service.settings, problems = update(self.service.settings, values)
        endpoint = self.service.settings.endpoint
        if endpoint:
            problems += (f"applyEdit.endpoint is not supported yet; {endpoint} is not used.",)
        for problem in problems:
            if problem not in self._told:
                self._told.add(problem)
                self.client.show(problem)

    async def _warm_up(self) -> None:
        """Load the model before it is needed; a failure is told, and the next edit tries again."""
        settings, backend = self.service.settings, self._server.backend
        loop = asyncio.get_running_loop()
        work = self._own_progress()
        work.begin("Loading the model", settings.model)

        def notice(sentence: str) -> None:
            loop.call_soon_threadsafe(work.report, sentence, None)

        try:
            source = backend.sources(settings.target)
            config, report = (
                convert.engine_config(settings, ApplyOptions()),
                models.Report(notice=notice),
            )
            await loop.run_in_executor(backend.workers.model, source, config, report)
        except ApplyError as error:
            sentence = error.spelled(spelled).message
            self.client.show(f"{error.code}: {sentence}", types.MessageType.Error)
        finally:
            work.end("")

    # Documents

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """See LSP."""
        self._open(params.text_document)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """See LSP."""
        self._change(params.text_document, params.content_changes)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """See LSP."""
        self._close(params.text_document.uri)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: types.DidOpenNotebookDocumentParams) -> None:
        """Each cell is a document."""
        for cell in params.cell_text_documents:
            self._open(cell)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(
        self, params: types.DidChangeNotebookDocumentParams
    ) -> None:
        """Cells come, go and change."""
        cells = params.change.cells
        if cells is None:
            return
        if cells.structure is not None:
            for opened in cells.structure.did_open or ():
                self._open(opened)
            for closed in cells.structure.did_close or ():
                self._close(closed.uri)
        for text in cells.text_content or ():
            self._change(text.document, text.changes)

    @lsp_method(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(
        self, params: types.DidCloseNotebookDocumentParams
    ) -> None:
        """All its cells close."""
        for cell in params.cell_text_documents:
            self._close(cell.uri)

    def _open(self, item: types.TextDocumentItem) -> None:
        uri = DocumentUri.parse(item.uri)
        documents, language = self.service.documents, str(item.language_id)
        opened = documents.open(uri, language, item.version, item.text)
        self.service.jobs.stop_others(opened, changed(uri))

    def _change(
        self,
        document: types.VersionedTextDocumentIdentifier,
        changes: Any,
    ) -> None:
        uri = DocumentUri.parse(document.uri)
        pieces = [(convert.change_range(change), change.text) for change in changes]
        self.service.documents.change(uri, document.version, pieces)
        self.service.jobs.stop_document(uri, changed(uri))

    def _close(self, text: str) -> None:
        uri = DocumentUri.parse(text)
        self.service.documents.close(uri)
        self.service.jobs.stop_document(
            uri, DocumentChanged(f"{uri.name} was closed. Nothing was changed.")
        )

    # Edits

    @lsp_method(protocol.APPLY)
    async def apply(self, params: object) -> object:
        """The edit as a result: the client applies it."""
        given = apply_params(params)
        work = WorkDone(self.client, given.work_done_token)
        return await self.service.apply(given, self.msg_id, work, self._as_result)

    async def _as_result(self, job: Job, outcome: Outcome) -> object:
        status = "changed" if outcome.edits else "unchanged"
        version = outcome.snapshot.version
        return to_json(protocol.ApplyResult(status, outcome.edits, version, outcome.report))  # type: ignore[arg-type]

    async def _apply_command(self, params: types.ExecuteCommandParams) -> object:
        """The edit through `workspace/applyEdit`: for editors without code of ours."""
        given = apply_params(_argument(params))
        token = params.work_done_token
        token = given.work_done_token if token is None else token
        work = self._own_progress() if token is None else WorkDone(self.client, token)
        return await self.service.apply(given, self.msg_id, work, self._as_edit)

    async def _as_edit(self, job: Job, outcome: Outcome) -> object:
        if not outcome.edits:
            return to_json(protocol.CommandResult("unchanged", outcome.report))
        confirm = self.service.settings.preview == "always"
        params = apply_edit_params(self.client, outcome, confirm=confirm)
        # From here on it is the editor's to refuse: half way there is nothing to cancel.
        job.committed = True
        answer = await self.client.ask(types.WORKSPACE_APPLY_EDIT, params)
        self._check_applied(outcome, answer)
        return to_json(protocol.CommandResult("applied", outcome.report))

    def _check_applied(self, outcome: Outcome, answer: types.ApplyWorkspaceEditResult) -> None:
        """Believe the editor, unless the buffer says otherwise.

        Some drop an edit of an old version and still say that it was applied; the change that made
        it old has come before that answer.
        """
        uri = outcome.snapshot.uri
        if not answer.applied:
            reason = answer.failure_reason or "it gave no reason"
            raise DocumentChanged(
                f"The editor refused the edit of {uri.name} ({reason}). Nothing was changed.",
                {"reason": answer.failure_reason},
            )
        opened = self.service.documents.find(uri)
        if opened is None or opened.version == outcome.snapshot.version:
            return
        if opened.mirror.text != outcome.text:
            raise changed(uri)

    @lsp_method(types.TEXT_DOCUMENT_CODE_ACTION)
    async def code_action(self, params: types.CodeActionParams) -> list[object] | None:
        """Offer to apply an edit that stands in the document."""
        uri = DocumentUri.parse(params.text_document.uri)
        opened = self.service.documents.find(uri)
        selected = convert.range_of(params.range)
        if opened is None or selected.start == selected.end:
            return None
        snapshot = opened.snapshot()
        found = await self._server.backend.workers.aside(edit_in, snapshot, selected)
        if found is None:
            return None
        document = protocol.TextDocument(params.text_document.uri, snapshot.version)
        argument = protocol.ApplyParams(
            document, found.instruction, found.snippet, found.selection, found.place
        )
        command = types.Command(TITLE, protocol.APPLY_COMMAND, arguments=[to_json(argument)])
        if not self.client.can("text_document.code_action.code_action_literal_support"):
            return [command]
        kind = types.CodeActionKind.RefactorRewrite
        return [types.CodeAction(TITLE, kind=kind, command=command)]

    @lsp_method(protocol.PREPARE)
    async def prepare(self, params: object) -> object:
        """The user is about to ask for an edit of this document."""
        document = prepare_params(params)
        return to_json(protocol.PrepareResult(await self.service.prepare(document)))

    # Cancelling and statistics

    @lsp_method(protocol.CANCEL)
    async def cancel(self, params: object) -> object:
        """Stop one document's job, or all; a task, so that requests sent before it have begun."""
        document = cancel_params(params).text_document
        jobs = self.service.jobs
        if document is None:
            stopped = jobs.stop_all()
        else:
            stopped = jobs.stop_document(DocumentUri.parse(document.uri), cancelled())
        return to_json(protocol.CancelResult(stopped))

    async def _cancel_command(self, params: types.ExecuteCommandParams) -> object:
        return await self.cancel(_argument(params))

    @lsp_method(protocol.STATS)
    def stats(self, params: object) -> object:
        """Figures per request class."""
        return self._server.backend.metrics.to_json()

    def _stats_command(self, params: types.ExecuteCommandParams) -> object:
        return self.stats(None)

    @lsp_method(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    def lsp_work_done_progress_cancel(self, params: types.WorkDoneProgressCancelParams) -> None:
        """The user pressed the bar's button."""
        self.service.jobs.stop_token(params.token)

    def _handle_cancel_notification(self, msg_id: int | str) -> None:
        found = self.service.jobs.stop_request(msg_id)
        if not found and msg_id in self._request_futures:
            super()._handle_cancel_notification(msg_id)

    def _own_progress(self) -> WorkDone:
        """A progress for work that came without a token, where the client has such a thing."""
        if not self.client.can("window.work_done_progress"):
            return WorkDone(self.client, None)
        work = WorkDone(self.client, str(uuid.uuid4()), known=False)
        # Not waited for: an editor that is slow to answer must not hold up the edit.
        self._aside(work.make_known())
        return work

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)  # the loop itself would let go of it
        task.add_done_callback(self._background.discard)
        task.add_done_callback(settle)


class ApplyLanguageServer(LanguageServer):
    """One client's server. `defaults` are the settings that the command line gives."""

    protocol: ApplyProtocol

    def __init__(self, backend: Backend, defaults: Settings) -> None:
        self.backend, self.defaults = backend, defaults
        super().__init__(
            "apply-server",
            __version__,
            notebook_document_sync=NOTEBOOKS,
            protocol_cls=ApplyProtocol,
            converter_factory=converter,
        )

    def disconnect(self) -> None:
        """The client is gone, so nobody wants its edits."""
        self.protocol.service.jobs.stop_all()


def _argument(params: types.ExecuteCommandParams) -> object:
    """A command's only argument."""
    return params.arguments[0] if params.arguments else None
