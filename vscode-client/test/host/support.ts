/** What the tests in the extension host do with editors. */

import * as assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { answers, files } from '../e2e/cases.cjs';

/** No test is about speed: only what never comes takes longer. */
const PATIENCE_MS = 120_000;

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

/** The path of what lies beside the workspace. */
export const beside = (name: string): string => path.join(folder(), '..', name);
export const uriOf = (name: string): vscode.Uri => vscode.Uri.file(path.join(folder(), name));
export const before = (name: Name): string => files[name];
export const after = (name: keyof typeof answers): string => answers[name];
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
  for (const last = Date.now() + PATIENCE_MS; Date.now() < last; ) {
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
  for (const last = Date.now() + PATIENCE_MS; Date.now() < last; ) {
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
  fs.writeFileSync(beside('pass-delay-ms'), String(ms));
  await run('applyEdit.restartServer');
}

/** What Python was run with so far: a process id and arguments each. */
export function pythons(): string[] {
  return fs.readFileSync(beside('started'), 'utf8').split('\n');
}

/** The process ids of all servers started so far. */
export function servers(): number[] {
  return pythons()
    .filter((line) => line.includes(' serve '))
    .map((line) => Number.parseInt(line, 10));
}

/** Colours of ours in a kind of theme, as CSS computes them. */
export function colors(kind: string, ...names: string[]): string[] {
  const extension = vscode.extensions.getExtension('apply-server.apply-edit');
  const { contributes } = extension?.packageJSON as {
    contributes: { colors: { id: string; defaults: Record<string, string> }[] };
  };
  return names.map((name) => {
    const found = contributes.colors.find(({ id }) => id === `applyEdit.${name}`)?.defaults[kind];
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(found?.slice(at, at + 2) ?? '', 16));
    return `rgb(${red}, ${green}, ${blue})`;
  });
}

/** Have the driver take a picture of the page, once it is in a theme of that kind and colours. */
export function picture(name: string, colors: readonly string[]): Promise<void> {
  return requested(`${name}.request`, { kind: 'picture', name, colors });
}

/** Have the driver press a button of the notification that has `text`. */
export function press(text: string, button: string): Promise<void> {
  return requested('button.request', { kind: 'button', text, button });
}

async function requested(name: string, request: unknown): Promise<void> {
  const file = beside(name);
  fs.writeFileSync(`${file}-new`, JSON.stringify(request));
  fs.renameSync(`${file}-new`, file); // the driver never sees half of it
  await until(() => !fs.existsSync(file));
  assert.ok(!fs.existsSync(`${file}-failed`), JSON.stringify(request));
}
