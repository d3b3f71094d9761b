/** Accept and reject above each change of a preview, and for all of them at its top. */

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

  constructor(private readonly jobOf: (uri: vscode.Uri) => Job | undefined) {}

  refresh(): void {
    this.changed.fire();
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const job = this.jobOf(document.uri);
    if (job === undefined) {
      return [];
    }
    return [...lensesForAll(job), ...lensesOfHunks(job)];
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}

function lensesForAll(job: Job): vscode.CodeLens[] {
  if (job.session.phase === 'running') {
    return [lens(0, '$(sync~spin) Applying …'), lens(0, '$(circle-slash) Cancel', 'cancel')];
  }
  return [
    lens(0, '$(check-all) Accept All', 'acceptAll'),
    lens(0, '$(close-all) Reject All', 'rejectAll'),
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
      lenses.push(...lensesOf(hunk, first, rows, job));
    }
  }
  return lenses;
}

function lensesOf(hunk: number, line: number, rows: readonly Row[], job: Job): vscode.CodeLens[] {
  const { phase, hunkCount } = job.session;
  const added = rows.filter(({ kind }) => kind === 'added' || kind === 'changed').length;
  const title = change(hunk, hunkCount, added, rows.length - added);
  if (phase === 'running') {
    const verified = rows.every((row) => row.verified);
    return [lens(line, `${title} · ${verified ? 'verified' : 'not verified yet'}`)];
  }
  return [
    lens(line, '$(check) Accept', 'acceptHunk', hunk),
    lens(line, '$(close) Reject', 'rejectHunk', hunk),
    lens(line, title),
  ];
}

function lens(line: number, title: string, command?: string, hunk?: number): vscode.CodeLens {
  return new vscode.CodeLens(new vscode.Range(line, 0, line, 0), {
    title,
    command: command === undefined ? '' : `applyEdit.${command}`,
    arguments: hunk === undefined ? [] : [hunk],
  });
}
