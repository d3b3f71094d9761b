/** The entry that VS Code runs in its extension host. */

import * as vscode from 'vscode';
import { edits } from './edits';
import { runAll } from './runner';
import { setup } from './setup';
import { beside, closeAll, configure, run as command } from './support';
import { trouble } from './trouble';

export async function run(): Promise<void> {
  const python = pythonPath();
  const extension = vscode.extensions.getExtension('apply-server.apply-edit');
  await extension?.activate();
  edits();
  trouble();
  setup();
  await runAll(() => fresh(python), beside('results.txt'));
}

async function fresh(python: string | undefined): Promise<void> {
  if (pythonPath() !== python) {
    await configure('pythonPath', python);
  }
  for (const name of ['preview', 'autoAcceptDelay', 'verify']) {
    await configure(name, undefined);
  }
  await closeAll();
  await command('notifications.clearAll');
}

function pythonPath(): string | undefined {
  return vscode.workspace.getConfiguration('applyEdit').get('pythonPath');
}
