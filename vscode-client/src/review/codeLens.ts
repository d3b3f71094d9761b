/**
 * Accept and reject above each change of a finished preview, and for all of them at its top. None
 * while an edit runs: they would push the lines about that are being watched.
 */

import * as vscode from 'vscode';
import type { Row } from '../editSession';
import type { Job } from '../job';
import { change } from '../words';
import { SCHEME } from './documents';

export class Lenses implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event; // registering reads it
  private readonly registration = vscode.languages.registerCodeLensProvider(
    { scheme: SCHEME },
    this,
  );

  private shown = '';

  constructor(private readonly jobOf: (uri: vscode.Uri) => Job | undefined) {}

  /**
   * Have them asked for anew where they differ from those of before. VS Code waits for a quiet moment
   * to ask, and one edit's progress would leave none to another that is being reviewed.
   */
  refresh(jobs: readonly Job[]): void {
    const now = JSON.stringify(jobs.map(offered));
    if (now !== this.shown) {
      this.shown = now;
      this.changed.fire();
    }
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const job = this.jobOf(document.uri);
    return job?.session.phase === 'reviewing' ? [...lensesForAll(), ...lensesOfHunks(job)] : [];
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}

/** What the lenses of a job depend on, but for the preview's text, whose changes VS Code sees itself. */
function offered({ session, preview }: Job): unknown {
  const hunks = Array.from({ length: session.hunkCount }, (_, hunk) => session.decision(hunk));
  return [preview.uri, session.phase, session.phase === 'reviewing' ? hunks : []];
}

function lensesForAll(): vscode.CodeLens[] {
  return [
    lens(0, '$(check-all) Accept All', 'acceptAll'),
    lens(0, '$(discard) Reject All', 'rejectAll'),
    lens(0, '$(diff) Side by Side', 'showDiff'),
  ];
}

function lensesOfHunks(job: Job): vscode.CodeLens[] {
  const { session, preview } = job;
  const lenses: vscode.CodeLens[] = [];
  for (let hunk = 0; hunk < session.hunkCount; hunk += 1) {
    const rows = preview.rows.filter((row) => row.hunk === hunk);
    const first = preview.rowsOf(hunk)?.[0];
    if (first !== undefined && session.decision(hunk) === 'undecided') {
      lenses.push(...lensesOf(hunk, first, rows, session.hunkCount));
    }
  }
  return lenses;
}

function lensesOf(
  hunk: number,
  line: number,
  rows: readonly Row[],
  hunkCount: number,
): vscode.CodeLens[] {
  const added = rows.filter(({ kind }) => kind === 'added' || kind === 'changed').length;
  return [
    lens(line, '$(check) Accept', 'acceptHunk', hunk),
    lens(line, '$(close) Reject', 'rejectHunk', hunk),
    lens(line, change(hunk, hunkCount, added, rows.length - added)),
  ];
}

function lens(line: number, title: string, command?: string, hunk?: number): vscode.CodeLens {
  return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), {
    title,
    command: command === undefined ? '' : `applyEdit.${command}`,
    arguments: hunk === undefined ? [] : [hunk],
  });
}
