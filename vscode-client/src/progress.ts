/** The progress notification of a running edit, with Cancel. */

import * as path from 'node:path';
import * as vscode from 'vscode';
import type { Job } from './job';
import * as words from './words';

/** A quick edit is done before a notification could be read. */
const SHOWN_AFTER_MS = 500;

/** Show how far `job` is until `sent` is settled. */
export async function showProgress(job: Job, sent: Promise<unknown>): Promise<void> {
  const settled = sent.then(
    () => true,
    () => true,
  );
  const patience = new Promise<false>((resolve) => setTimeout(resolve, SHOWN_AFTER_MS, false));
  if (await Promise.race([settled, patience])) {
    return;
  }
  const options = {
    location: vscode.ProgressLocation.Notification,
    title: `Apply Edit: ${path.posix.basename(job.document.uri.path)}`,
    cancellable: true,
  };
  await vscode.window.withProgress(options, async (bar, token) => {
    let reached = 0;
    const report = (): void => {
      const { progress } = job.session;
      const percent = Math.floor(progress.share * 100);
      const message = progress.share > 0 ? words.progress(progress) : job.message;
      bar.report({ message, increment: Math.max(0, percent - reached) });
      reached = Math.max(reached, percent);
    };
    report();
    const subscriptions = [
      job.onDidChange(report),
      token.onCancellationRequested(() => {
        job.cancel();
      }),
    ];
    await settled;
    vscode.Disposable.from(...subscriptions).dispose();
  });
}
