/** The status bar's item: what a job does, how far it is, how it ended. */

import * as path from 'node:path';
import * as vscode from 'vscode';
import type { Job } from './job';
import * as words from './words';

export class StatusBar implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem(
    'applyEdit.status',
    vscode.StatusBarAlignment.Left,
    0,
  );

  constructor() {
    this.item.name = 'Apply Edit';
  }

  /** What `job` does now. */
  showJob(job: Job): void {
    const name = path.posix.basename(job.document.uri.path);
    const { phase, progress, undecidedCount } = job.session;
    if (phase === 'running') {
      const known = progress.share > 0 ? words.progress(progress) : job.message || 'starting';
      this.show(`$(sync~spin) ${name} ${known}`, 'Cancel the edit', 'applyEdit.cancel');
      return;
    }
    const toReview = `$(diff) ${name}: ${words.changes(undecidedCount)} to review`;
    this.show(toReview, 'Go to the next change', 'applyEdit.nextHunk');
  }

  /** How the last job ended; `detail` is shown on hovering. */
  showEnd(text: string, detail: string): void {
    this.show(text, detail, 'applyEdit.showLog');
  }

  hide(): void {
    this.item.hide();
  }

  dispose(): void {
    this.item.dispose();
  }

  private show(text: string, tooltip: string, command: string): void {
    this.item.text = text;
    this.item.tooltip = tooltip;
    this.item.command = command;
    this.item.show();
  }
}
