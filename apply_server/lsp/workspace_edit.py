"""One `workspace/applyEdit` for editors without code of ours.

Must not know how the edit was computed.
"""

from __future__ import annotations

from lsprotocol import types

from apply_server.errors import InvalidRequest
from apply_server.lsp.client import Client
from apply_server.lsp.protocol import TextEdit
from apply_server.lsp.service import Outcome

LABEL = "Apply edit"
_ANNOTATION = "applyEdit"


def apply_edit_params(
    client: Client, outcome: Outcome, *, confirm: bool
) -> types.ApplyWorkspaceEditParams:
    """The edit in the form this client takes: versioned where it can be, one step to undo.

    `confirm`: clients that can are to show it first. Raises InvalidRequest where the client can't
    make the new file that the edit needs.
    """
    if client.can("workspace.workspace_edit.document_changes"):
        edit = _document_changes(client, outcome, confirm)
    else:
        _check_no_new_file(outcome)
        changes = [_text_edit(one) for one in outcome.edits]
        edit = types.WorkspaceEdit(changes={outcome.snapshot.uri.text: changes})
    return types.ApplyWorkspaceEditParams(edit=edit, label=LABEL)


def _document_changes(client: Client, outcome: Outcome, confirm: bool) -> types.WorkspaceEdit:
    annotated = client.can("workspace.workspace_edit.change_annotation_support")
    uri = outcome.snapshot.uri.text
    edits = [
        types.AnnotatedTextEdit(_ANNOTATION, *_place(one)) if annotated else _text_edit(one)
        for one in outcome.edits
    ]
    document = types.OptionalVersionedTextDocumentIdentifier(uri, outcome.snapshot.version)
    annotation = types.ChangeAnnotation(LABEL, confirm, _summary(outcome))
    return types.WorkspaceEdit(
        document_changes=[
            *_new_file(client, outcome),
            types.TextDocumentEdit(document, edits),
        ],
        change_annotations={_ANNOTATION: annotation} if annotated else None,
    )


def _new_file(client: Client, outcome: Outcome) -> list[types.CreateFile]:
    if not outcome.snapshot.new:
        return []
    resources = client.capabilities.workspace
    edit = resources.workspace_edit if resources else None
    if edit is None or types.ResourceOperationKind.Create not in (edit.resource_operations or ()):
        _check_no_new_file(outcome)
    return [types.CreateFile(outcome.snapshot.uri.text)]


def _check_no_new_file(outcome: Outcome) -> None:
    if outcome.snapshot.new:
        raise InvalidRequest(
            f"There is no file {outcome.snapshot.uri.name}, and this editor can't be asked to make "
            "one. Create it, then run the edit again."
        )


def _summary(outcome: Outcome) -> str:
    report = outcome.report
    return f"+{report.added} −{report.removed} · {report.copied_share:.0%} copied"


def _place(edit: TextEdit) -> tuple[types.Range, str]:
    start, end = (
        types.Position(at.line, at.character) for at in (edit.range.start, edit.range.end)
    )
    return types.Range(start, end), edit.new_text


def _text_edit(edit: TextEdit) -> types.TextEdit:
    return types.TextEdit(*_place(edit))
