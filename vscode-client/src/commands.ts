/** The commands, each in a few lines. Must not know how an edit is carried out. */

import * as path from 'node:path';
import * as vscode from 'vscode';
import type { Instructions } from './instruction';
import type { ApplyRequest, Job } from './job';
import type { Jobs, Outcome } from './jobs';
import { tabsOf, type Documents } from './review/documents';

/** The arguments of `applyEdit.apply` for other extensions: an instruction, a snippet, or both. */
export interface ApplyArguments {
  readonly uri: vscode.Uri | string;
  readonly instruction?: string;
  readonly snippet?: string;
}

/** Its answer: how the edit ended. `code` is one of the documented error codes. */
export type ApplyAnswer =
  | { readonly status: 'applied'; readonly added: number; readonly removed: number }
  | { readonly status: 'unchanged' }
  | { readonly status: 'cancelled' }
  | { readonly status: 'failed'; readonly code: string; readonly message: string };

export class Commands {
  constructor(
    private readonly jobs: Jobs,
    private readonly instructions: Instructions,
    private readonly documents: Documents,
    private readonly aboutToAsk: (uri: vscode.Uri) => void,
    private readonly told: (request: ApplyRequest, outcome: Outcome) => void,
  ) {}

  /** With arguments: that edit. Without: the active editor's file, an instruction is asked for. */
  async apply(given?: unknown): Promise<ApplyAnswer | undefined> {
    const request = isArguments(given) ? fromArguments(given) : fromEditor();
    if (request === undefined) {
      void vscode.window.showWarningMessage('Open the file to edit first.');
      return undefined;
    }
    if (request.instruction !== undefined || request.snippet !== undefined) {
      return this.start(request);
    }
    this.aboutToAsk(request.uri);
    const name = path.posix.basename(request.uri.path);
    const instruction = await this.instructions.ask(name, request.selection !== undefined);
    return instruction === undefined ? undefined : this.start({ ...request, instruction });
  }

  async applyFromClipboard(): Promise<ApplyAnswer | undefined> {
    const snippet = await vscode.env.clipboard.readText();
    const request = fromEditor();
    if (request === undefined || snippet.trim() === '') {
      const what =
        request === undefined ? 'Open the file to edit first.' : 'The clipboard is empty.';
      void vscode.window.showWarningMessage(what);
      return undefined;
    }
    return this.start({ ...request, snippet });
  }

  async start(request: ApplyRequest): Promise<ApplyAnswer> {
    await show(request.uri);
    const outcome = await this.jobs.apply(request);
    this.told(request, outcome);
    return answer(outcome);
  }

  retry(): Promise<ApplyAnswer> | undefined {
    const last = this.jobs.lastRequest(vscode.window.activeTextEditor?.document.uri);
    return last === undefined ? undefined : this.start(last);
  }

  cancel(): void {
    this.jobs.current?.cancel();
  }

  decideAll(decision: 'accepted' | 'rejected'): void {
    this.jobs.current?.decide(decision);
  }

  /** Decide a hunk, the one at the cursor if none is given, and go on to the next. */
  decideHunk(decision: 'accepted' | 'rejected', given: unknown): void {
    const job = this.jobs.current;
    const hunk = typeof given === 'number' ? given : job && hunkAtCursor(job);
    if (job === undefined || hunk === undefined) {
      return;
    }
    job.decide(decision, hunk);
    const next = job.session.nextUndecided(hunk);
    if (next !== undefined) {
      job.preview.reveal(next);
    }
  }

  /** To the next (`step` 1) or previous (-1) undecided hunk, around the ends. */
  async move(step: 1 | -1): Promise<void> {
    const job = this.jobs.current;
    if (job === undefined) {
      return;
    }
    await this.bringForward(job);
    const target = undecidedFrom(job, step);
    if (target !== undefined) {
      job.preview.reveal(target);
    }
  }

  async showDiff(): Promise<void> {
    const job = this.jobs.current;
    if (job === undefined) {
      return;
    }
    const { uri, languageId } = job.document;
    const result = this.documents.uriFor(uri, 'Result');
    this.documents.set(result, job.session.result().join('\n'));
    await this.documents.open(result, languageId);
    const title = `${path.posix.basename(uri.path)} ↔ after the edit`;
    await vscode.commands.executeCommand('vscode.diff', uri, result, title);
  }

  private async bringForward(job: Job): Promise<void> {
    if (job.preview.editor === undefined) {
      await show(job.document.uri);
      await job.preview.show();
      await vscode.window.showTextDocument(job.preview.uri, { preview: false });
    }
  }
}

function answer(outcome: Outcome): ApplyAnswer {
  switch (outcome.status) {
    case 'applied':
      return { status: 'applied', added: outcome.added, removed: outcome.removed };
    case 'unchanged':
      return { status: 'unchanged' };
    case 'failed': {
      const { code, message } = outcome.failure;
      return code === 'Cancelled' ? { status: 'cancelled' } : { status: 'failed', code, message };
    }
  }
}

/** The file must be visible for its preview to be; it is not given the focus. */
async function show(uri: vscode.Uri): Promise<void> {
  if (tabsOf(uri).length === 0) {
    try {
      await vscode.window.showTextDocument(uri, { preserveFocus: true, preview: false });
    } catch {
      // the job says what is wrong with it
    }
  }
}

function isArguments(given: unknown): given is ApplyArguments {
  return (
    typeof given === 'object' &&
    given !== null &&
    !(given instanceof vscode.Uri) && // what a menu gives
    'uri' in given
  );
}

function fromArguments({ uri, instruction, snippet }: ApplyArguments): ApplyRequest {
  return {
    uri: typeof uri === 'string' ? vscode.Uri.parse(uri, true) : uri,
    ...(instruction === undefined ? {} : { instruction }),
    ...(snippet === undefined ? {} : { snippet }),
  };
}

function fromEditor(): ApplyRequest | undefined {
  const editor = vscode.window.activeTextEditor;
  return (
    editor && {
      uri: editor.document.uri,
      ...(editor.selection.isEmpty ? {} : { selection: editor.selection }),
    }
  );
}

function hunkAtCursor({ session, preview }: Job): number | undefined {
  const line = preview.editor?.selection.active.line;
  const row = line === undefined ? undefined : preview.rows[line];
  return row?.hunk ?? session.nextUndecided();
}

function undecidedFrom({ session, preview }: Job, step: 1 | -1): number | undefined {
  const line = preview.editor?.selection.active.line ?? 0;
  const starts: (readonly [number, number])[] = [];
  for (let hunk = 0; hunk < session.hunkCount; hunk += 1) {
    const rows = preview.rowsOf(hunk);
    if (rows !== undefined && session.decision(hunk) === 'undecided') {
      starts.push([hunk, rows[0]]);
    }
  }
  const ahead =
    step === 1 ? starts.find(([, row]) => row > line) : starts.findLast(([, row]) => row < line);
  return (ahead ?? starts.at(step === 1 ? 0 : -1))?.[0];
}
