/** What the tests in the extension host do with editors. */

import * as assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { answers, files } from '../e2e/cases.cjs';

export type Name = keyof typeof files;
export const run = vscode.commands.executeCommand;

export interface Answer {
  readonly status: string;
  readonly code?: string;
  readonly message?: string;
  readonly added?: number;
  readonly removed?: number;
}

export function folder(): string {
  const first = vscode.workspace.workspaceFolders?.[0];
  assert.ok(first);
  return first.uri.fsPath;
}

export const uriOf = (name: string): vscode.Uri => vscode.Uri.file(path.join(folder(), name));
export const before = (name: Name): string => files[name];
export const after = (name: Name): string => answers[name];
export const onDisk = (name: Name): string => fs.readFileSync(uriOf(name).fsPath, 'utf8');

export async function open(name: Name): Promise<vscode.TextEditor> {
  return vscode.window.showTextDocument(uriOf(name), { preview: false });
}

export function apply(name: Name): Promise<Answer> {
  return Promise.resolve(
    run<Answer>('applyEdit.apply', { uri: uriOf(name), instruction: 'Do it.' }),
  );
}

/** An edit came to its end; if it didn't, the whole answer says why. */
export function applied(answer: Answer): void {
  assert.equal(answer.status, 'applied', JSON.stringify(answer));
}

/** Wait for a condition, looking again often; never for a time. */
export async function until<T>(look: () => T | undefined | false): Promise<T> {
  for (let tries = 0; tries < 800; tries += 1) {
    const found = look();
    if (found !== undefined && found !== false) {
      return found;
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error(`it never came true: ${look.toString()}`);
}

/** The preview's editor, once it shows `text`. */
export function preview(holds: (text: string) => boolean = () => true): Promise<vscode.TextEditor> {
  return until(() => {
    const editor = vscode.window.activeTextEditor;
    const text = editor?.document.uri.scheme === 'apply-edit' && editor.document.getText();
    return typeof text === 'string' && holds(text) && editor;
  });
}

export async function lenses(editor: vscode.TextEditor): Promise<string[]> {
  const found = await run<vscode.CodeLens[]>('vscode.executeCodeLensProvider', editor.document.uri);
  return found.flatMap((lens) => lens.command?.title ?? []);
}

/** Wait until the preview offers to accept or reject: the edit is finished. */
export async function reviewed(): Promise<vscode.TextEditor> {
  const editor = await preview();
  for (let tries = 0; tries < 400; tries += 1) {
    if ((await lenses(editor)).some((title) => title.includes('Accept All'))) {
      return editor;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('the edit was never finished');
}

export function previews(): vscode.Tab[] {
  return vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .filter(
      ({ input }) => input instanceof vscode.TabInputText && input.uri.scheme === 'apply-edit',
    );
}

export async function closeAll(): Promise<void> {
  for (const document of vscode.workspace.textDocuments) {
    if (document.isDirty && !document.isClosed) {
      await vscode.window.showTextDocument(document);
      await run('workbench.action.revertAndCloseActiveEditor');
    }
  }
  await run('workbench.action.closeAllEditors');
  for (const name of Object.keys(files) as Name[]) {
    fs.chmodSync(uriOf(name).fsPath, 0o644);
    assert.equal(onDisk(name), before(name), `${name} was written`);
  }
}

export async function configure(name: string, value: unknown): Promise<void> {
  const target = vscode.ConfigurationTarget.Global;
  await vscode.workspace.getConfiguration('applyEdit').update(name, value, target);
}

/** Start the server anew, each pass taking that long. */
export async function paced(ms: number): Promise<void> {
  fs.writeFileSync(path.join(folder(), '..', 'pass-delay-ms'), String(ms));
  await run('applyEdit.restartServer');
}

/** The process ids of all servers started so far. */
export function servers(): number[] {
  const log = fs.readFileSync(path.join(folder(), '..', 'started'), 'utf8');
  return log
    .split('\n')
    .filter((line) => line.includes(' serve '))
    .map((line) => Number.parseInt(line, 10));
}

/** Have the driver take a picture of the page, once its theme is of the kind that names it. */
export async function picture(name: string): Promise<void> {
  const file = path.join(folder(), `${name}.picture`);
  fs.writeFileSync(file, '');
  await until(() => !fs.existsSync(file));
}
