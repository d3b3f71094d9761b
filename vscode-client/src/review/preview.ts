/**
 * The preview of one edit: a read-only document that shows its rows in the place of the file, which
 * stays as it is. Must not know how the edit comes about nor what is done with it.
 */

import * as vscode from 'vscode';
import type { EditSession, Row } from '../editSession';
import type { Decorations } from './decorations';
import { tabsOf, type Documents } from './documents';

/** Partial results come faster than anyone reads. */
const REFRESH_MS = 60;

export class Preview implements vscode.Disposable {
  readonly uri: vscode.Uri;
  rows: readonly Row[] = [];
  private shownText = '';
  private timer: NodeJS.Timeout | undefined;
  private opening: Promise<void> | undefined;
  private readonly subscriptions: { dispose(): unknown }[];
  private readonly refreshed = new vscode.EventEmitter<void>();
  readonly onDidRefresh = this.refreshed.event;

  constructor(
    private readonly file: vscode.TextDocument,
    private readonly session: EditSession,
    private readonly documents: Documents,
    private readonly decorations: Decorations,
  ) {
    this.uri = documents.uriFor(file.uri, 'Apply Edit');
    this.subscriptions = [
      this.refreshed,
      vscode.window.onDidChangeVisibleTextEditors(() => {
        this.decorate();
      }),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document.uri.toString() === this.uri.toString()) {
          this.catchUp(document);
        }
      }),
    ];
  }

  get isOpen(): boolean {
    return tabsOf(this.uri).length > 0;
  }

  /** The editor that shows the preview, where it is visible. */
  get editor(): vscode.TextEditor | undefined {
    return editorOf(this.uri);
  }

  /** Show it where the file is shown, at the same place; nothing where the file isn't visible. */
  show(): Promise<void> {
    const editor = editorOf(this.file.uri);
    if (editor === undefined || this.isOpen) {
      return Promise.resolve();
    }
    this.opening ??= this.open(editor).finally(() => {
      this.opening = undefined;
    });
    return this.opening;
  }

  private async open(editor: vscode.TextEditor): Promise<void> {
    const top = editor.visibleRanges[0]?.start.line ?? 0;
    const { active } = editor.selection;
    const { viewColumn } = editor;
    this.refresh();
    const document = await this.documents.open(this.uri, this.file.languageId);
    const cursor = new vscode.Position(this.rowOf(active.line), active.character);
    const shown = await vscode.window.showTextDocument(document, {
      ...(viewColumn === undefined ? {} : { viewColumn }),
      preserveFocus: true,
      preview: false,
      selection: new vscode.Range(cursor, cursor),
    });
    const first = this.rowOf(top);
    shown.revealRange(new vscode.Range(first, 0, first, 0), vscode.TextEditorRevealType.AtTop);
    shown.options = editor.options;
    this.catchUp(document);
  }

  /** Show what the session says now, soon. */
  refreshSoon(): void {
    this.timer ??= setTimeout(() => {
      this.refresh();
    }, REFRESH_MS);
  }

  refresh(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.rows = this.session.rows();
    const text = this.rows.map((row) => row.text).join('\n');
    if (text !== this.shownText) {
      this.shownText = text;
      this.documents.set(this.uri, text); // decorated when the document has changed
    }
    this.decorate();
    this.refreshed.fire();
  }

  /** The row that shows a line of the original, or stands nearest before it. */
  rowOf(originalLine: number): number {
    const index = this.rows.findIndex((row) => row.originalLine >= originalLine);
    return index >= 0 ? index : Math.max(0, this.rows.length - 1);
  }

  /** The rows [first, last] of a hunk, where it is still shown as one. */
  rowsOf(hunk: number): readonly [number, number] | undefined {
    const first = this.rows.findIndex((row) => row.hunk === hunk);
    const last = this.rows.findLastIndex((row) => row.hunk === hunk);
    return first >= 0 ? [first, last] : undefined;
  }

  /** Bring a hunk into view, with the cursor on it. */
  reveal(hunk: number): void {
    const rows = this.rowsOf(hunk);
    const { editor } = this;
    if (rows === undefined || editor === undefined) {
      return;
    }
    const start = new vscode.Position(rows[0], 0);
    editor.selection = new vscode.Selection(start, start);
    editor.revealRange(
      new vscode.Range(start, new vscode.Position(rows[1], 0)),
      vscode.TextEditorRevealType.InCenterIfOutsideViewport,
    );
  }

  async close(): Promise<void> {
    await this.opening?.catch(() => undefined);
    const tabs = tabsOf(this.uri);
    if (tabs.length > 0) {
      await vscode.window.tabGroups.close(tabs);
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    vscode.Disposable.from(...this.subscriptions).dispose();
    this.documents.delete(this.uri);
  }

  /** VS Code drops changes while it opens or updates a document: say it again until it has it. */
  private catchUp(document: vscode.TextDocument): void {
    if (document.getText() === this.shownText) {
      this.decorate();
      this.refreshed.fire();
    } else {
      this.documents.set(this.uri, this.shownText);
    }
  }

  private decorate(): void {
    const { editor } = this;
    if (editor?.document.getText() === this.shownText) {
      this.decorations.show(editor, this.rows);
    }
  }
}

export function editorOf(uri: vscode.Uri): vscode.TextEditor | undefined {
  const wanted = uri.toString();
  const editors = vscode.window.visibleTextEditors.filter(
    (editor) => editor.document.uri.toString() === wanted,
  );
  return editors.find((editor) => editor === vscode.window.activeTextEditor) ?? editors[0];
}
