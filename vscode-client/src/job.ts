/**
 * One edit of one open document, from the request to its application. Must not know how the user is
 * told about it, nor of other jobs.
 */

import * as vscode from 'vscode';
import { EditSession } from './editSession';
import type { ClientSettings } from './config';
import { cancelled, Failure, failureOf, fileChanged } from './failures';
import type { ApplyParams, ApplyResult, Report } from './protocol';
import { editorOf, Preview } from './review/preview';
import type { Decorations } from './review/decorations';
import { tabsOf, type Documents } from './review/documents';
import type { Listener } from './server';

const SHOWN_WITHIN_MS = 1000;

export interface ApplyRequest {
  readonly uri: vscode.Uri;
  readonly instruction?: string;
  readonly snippet?: string;
  readonly selection?: vscode.Range;
  readonly allowedGuards?: readonly string[];
}

export interface Applied {
  readonly added: number;
  readonly removed: number;
  readonly resultLines: number;
  readonly durationMs: number;
  readonly warnings: readonly string[];
}

/** How the edit of a job is asked for. */
export type Send = (
  params: ApplyParams,
  listener: Listener,
  cancel: vscode.CancellationToken,
) => Promise<ApplyResult>;

export class Job implements vscode.Disposable {
  readonly session: EditSession;
  readonly preview: Preview;
  message = '';
  private readonly cancelSource = new vscode.CancellationTokenSource();
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly subscriptions: { dispose(): unknown }[];
  private readonly showsPreview: boolean;
  private applying = false;
  private wasShown = false;
  private autoAccept: NodeJS.Timeout | undefined;
  private failure: Failure | undefined;
  private wake: () => void = () => undefined;
  /** Something about the job is to be shown anew. */
  readonly onDidChange = this.changed.event;

  constructor(
    readonly document: vscode.TextDocument,
    readonly request: ApplyRequest,
    private readonly settings: Pick<ClientSettings, 'verify' | 'preview' | 'autoAcceptDelay'>,
    documents: Documents,
    decorations: Decorations,
  ) {
    this.showsPreview = settings.preview === 'always';
    this.session = new EditSession(document.getText(), document.version);
    this.preview = new Preview(document, this.session, documents, decorations);
    this.subscriptions = [
      this.cancelSource,
      this.changed,
      this.preview,
      this.preview.onDidRefresh(() => {
        this.changed.fire();
      }),
      vscode.workspace.onDidChangeTextDocument((event) => {
        if (event.document === document && this.session.isStale(document.version)) {
          this.end(fileChanged());
        }
      }),
      vscode.workspace.onDidCloseTextDocument((closed) => {
        if (closed === document) {
          this.end(cancelled());
        }
      }),
      vscode.window.tabGroups.onDidChangeTabs(() => {
        this.endIfClosed();
      }),
      vscode.window.onDidChangeActiveTextEditor(() => {
        void this.showPreview();
      }),
    ];
  }

  /** The edit's whole life; undefined where there is nothing to change. Rejects with a Failure. */
  async run(
    send: Send,
    progress: (sent: Promise<ApplyResult>) => void,
  ): Promise<Applied | undefined> {
    try {
      const sent = this.send(send);
      progress(sent);
      const result = await sent;
      if (result.status === 'unchanged') {
        return undefined;
      }
      await this.review(result);
      return await this.apply(result.report);
    } finally {
      await this.preview.close();
      this.dispose();
    }
  }

  /** The user's Cancel: nothing is applied, whether the edit is being made or reviewed. */
  cancel(): void {
    this.end(cancelled());
  }

  decide(decision: 'accepted' | 'rejected', hunk?: number): void {
    if (this.session.phase !== 'reviewing') {
      return;
    }
    clearTimeout(this.autoAccept); // whoever decides, decides on the rest too
    this.session.decide(decision, hunk);
    this.preview.refresh();
    this.changed.fire();
    this.wake();
  }

  dispose(): void {
    clearTimeout(this.autoAccept);
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  private async send(send: Send): Promise<ApplyResult> {
    const { uri, instruction, snippet, selection, allowedGuards } = this.request;
    const params: ApplyParams = {
      textDocument: { uri: uri.toString(), version: this.session.version },
      ...(instruction === undefined ? {} : { instruction }),
      ...(snippet === undefined ? {} : { snippet }),
      ...(selection === undefined ? {} : { selection: rangeOf(selection) }),
      options: {
        verify: this.settings.verify, // the folder's own; the server knows only the window's
        ...(allowedGuards === undefined ? {} : { allowedGuards }),
      },
    };
    try {
      const result = await send(params, this.listener(), this.cancelSource.token);
      this.check();
      return result;
    } catch (error) {
      throw this.failure ?? failureOf(error);
    }
  }

  private listener(): Listener {
    return {
      partial: (part) => {
        if (this.session.receive(part)) {
          this.preview.refreshSoon();
          void this.showPreview();
        }
        this.changed.fire();
      },
      message: (message) => {
        this.message = message;
        this.changed.fire();
      },
    };
  }

  /** Until every hunk is decided; at once where nothing is to be reviewed. */
  private async review(result: ApplyResult): Promise<void> {
    this.session.finish(result);
    if (!this.showsPreview) {
      this.session.decide('accepted');
      return;
    }
    this.preview.refresh();
    this.changed.fire();
    await this.showPreview();
    this.acceptLater();
    while (this.session.phase === 'reviewing') {
      this.check();
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
    this.check();
  }

  private acceptLater(): void {
    const { autoAcceptDelay } = this.settings;
    if (autoAcceptDelay > 0) {
      this.autoAccept = setTimeout(() => {
        this.decide('accepted');
      }, autoAcceptDelay);
    }
  }

  /** One edit of the document, hence one undo step; it neither saves nor formats. */
  private async apply({ durationMs, warnings }: Report): Promise<Applied> {
    const edits = this.session.accepted();
    if (edits.length === 0) {
      throw cancelled();
    }
    await this.leavePreview();
    const edit = new vscode.WorkspaceEdit();
    edit.set(
      this.document.uri,
      edits.map(({ range, newText }) => new vscode.TextEdit(toRange(range), newText)),
    );
    this.check();
    const editor = editorOf(this.document.uri);
    const top = editor?.visibleRanges[0]?.start.line;
    this.applying = true;
    if (!(await vscode.workspace.applyEdit(edit))) {
      throw this.session.isStale(this.document.version) ? fileChanged() : readOnly(this.document);
    }
    if (editor !== undefined && top !== undefined) {
      this.keepScroll(editor, top);
    }
    const resultLines = this.document.lineCount;
    return { ...this.session.counts(), resultLines, durationMs, warnings };
  }

  /** Have the file's editor back first: VS Code moves the cursor with the text only in open ones. */
  private async leavePreview(): Promise<void> {
    const wasInFront = this.preview.editor !== undefined;
    await this.preview.close();
    if (wasInFront && tabsOf(this.document.uri).some((tab) => tab.isActive)) {
      await until(() => editorOf(this.document.uri) !== undefined);
    }
  }

  private keepScroll(editor: vscode.TextEditor, top: number): void {
    const line = this.session.lineAfter(top);
    if (line !== top && editor.visibleRanges[0]?.start.line !== line) {
      editor.revealRange(new vscode.Range(line, 0, line, 0), vscode.TextEditorRevealType.AtTop);
    }
  }

  private async showPreview(): Promise<void> {
    const worthIt = this.showsPreview && this.session.hunkCount > 0 && this.failure === undefined;
    if (worthIt && this.session.phase !== 'decided') {
      const wasOpen = this.preview.isOpen;
      await this.preview.show();
      this.wasShown ||= wasOpen || this.preview.isOpen;
    }
  }

  /** The user closed the preview or the file: what is undecided is left undone. */
  private endIfClosed(): void {
    const previewClosed = this.wasShown && !this.preview.isOpen;
    const fileClosed = this.wasShown && tabsOf(this.document.uri).length === 0;
    if (previewClosed || fileClosed) {
      this.end(cancelled());
    }
  }

  private end(failure: Failure): void {
    if (this.applying || this.session.phase === 'decided') {
      return;
    }
    this.failure ??= failure;
    this.cancelSource.cancel();
    this.wake();
  }

  private check(): void {
    if (this.failure !== undefined) {
      throw this.failure;
    }
    if (this.document.isClosed) {
      throw cancelled();
    }
    if (this.session.isStale(this.document.version)) {
      throw fileChanged();
    }
  }
}

function readOnly(document: vscode.TextDocument): Failure {
  const name = document.uri.path.split('/').at(-1) ?? '';
  return new Failure('ReadOnly', `${name} is read-only. Nothing was changed.`);
}

function rangeOf({ start, end }: vscode.Range): NonNullable<ApplyParams['selection']> {
  return {
    start: { line: start.line, character: start.character },
    end: { line: end.line, character: end.character },
  };
}

function toRange({ start, end }: NonNullable<ApplyParams['selection']>): vscode.Range {
  return new vscode.Range(start.line, start.character, end.line, end.character);
}

/** Wait for editors to change until `holds`, but not for ever. */
function until(holds: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      subscription.dispose();
      resolve();
    };
    const subscription = vscode.window.onDidChangeVisibleTextEditors(() => {
      if (holds()) {
        done();
      }
    });
    const timer = setTimeout(done, SHOWN_WITHIN_MS);
    if (holds()) {
      done();
    }
  });
}
