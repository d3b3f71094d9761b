/** The when-clause contexts of the keys and buttons: what the active editor's job does. */

import * as vscode from 'vscode';
import type { Jobs } from './jobs';

export class Contexts {
  private readonly set = new Map<string, boolean>();

  constructor(private readonly jobs: Jobs) {}

  refresh(): void {
    const uri = vscode.window.activeTextEditor?.document.uri;
    const job = this.jobs.of(uri);
    const reviewing = job?.session.phase === 'reviewing';
    this.update('applyEdit.running', job?.session.phase === 'running');
    this.update('applyEdit.reviewing', reviewing);
    this.update('applyEdit.canRetry', this.jobs.lastRequest(uri) !== undefined);
    this.update('applyEdit.anyJob', this.jobs.all.length > 0);
  }

  private update(name: string, value: boolean): void {
    if (this.set.get(name) !== value) {
      this.set.set(name, value);
      void vscode.commands.executeCommand('setContext', name, value);
    }
  }
}
