/** The entry that VS Code runs in its extension host. */

import * as path from 'node:path';
import * as vscode from 'vscode';
import { edits } from './edits';
import { runAll } from './runner';
import { closeAll, configure, folder } from './support';
import { trouble } from './trouble';

export async function run(): Promise<void> {
  const extension = vscode.extensions.getExtension('apply-server.apply-edit');
  await extension?.activate();
  edits();
  trouble();
  await runAll(fresh, path.join(folder(), 'results.txt'));
}

async function fresh(): Promise<void> {
  for (const name of ['preview', 'autoAcceptDelay', 'verify']) {
    await configure(name, undefined);
  }
  await closeAll();
}
