/**
 * All edits in progress, at most one for each document. Must not know how the user is told about
 * them.
 */

import { stat } from 'node:fs/promises';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { clientSettings } from './config';
import { Failure, failureOf } from './failures';
import { Job, type Applied, type ApplyRequest, type Send } from './job';
import type { ApplyResult } from './protocol';
import type { Decorations } from './review/decorations';
import type { Documents } from './review/documents';

/** How a job ended; `applied` and `unchanged` are successes. */
export type Outcome =
  | ({ readonly status: 'applied' } & Applied)
  | { readonly status: 'unchanged' }
  | { readonly status: 'failed'; readonly failure: Failure };

export class Jobs implements vscode.Disposable {
  private readonly jobs = new Map<string, Job>();
  private readonly last = new Map<string, ApplyRequest>();
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;

  constructor(
    private readonly send: Send,
    private readonly progress: (job: Job, sent: Promise<ApplyResult>) => void,
    private readonly documents: Documents,
    private readonly decorations: Decorations,
  ) {}

  get all(): readonly Job[] {
    return [...this.jobs.values()];
  }

  /** The job of a document or of its preview. */
  of(uri: vscode.Uri | undefined): Job | undefined {
    const wanted = uri?.toString();
    return this.all.find(
      (job) => job.document.uri.toString() === wanted || job.preview.uri.toString() === wanted,
    );
  }

  /** The job that a command without arguments means: the active editor's, else the only one. */
  get current(): Job | undefined {
    const active = this.of(vscode.window.activeTextEditor?.document.uri);
    return active ?? (this.all.length === 1 ? this.all[0] : undefined);
  }

  /** The request last made for a document. */
  lastRequest(uri: vscode.Uri | undefined): ApplyRequest | undefined {
    return uri === undefined ? undefined : this.last.get(uri.toString());
  }

  /** Carry out an edit up to its end; never rejects. */
  async apply(request: ApplyRequest): Promise<Outcome> {
    const key = request.uri.toString();
    this.last.set(key, request);
    try {
      const job = await this.open(request);
      this.jobs.set(key, job);
      const subscription = job.onDidChange(() => {
        this.changed.fire();
      });
      try {
        this.changed.fire();
        const applied = await job.run(this.send, (sent) => {
          this.progress(job, sent);
        });
        return applied === undefined ? { status: 'unchanged' } : { status: 'applied', ...applied };
      } finally {
        subscription.dispose();
        this.jobs.delete(key);
        this.changed.fire();
      }
    } catch (error) {
      return { status: 'failed', failure: failureOf(error) };
    }
  }

  dispose(): void {
    for (const job of this.all) {
      job.cancel();
    }
    this.changed.dispose();
  }

  private async open(request: ApplyRequest): Promise<Job> {
    const { uri } = request;
    const name = path.posix.basename(uri.path);
    this.refuseSecond(uri, name);
    await refuseUnwritable(uri, name);
    const document = await vscode.workspace.openTextDocument(uri);
    this.refuseSecond(uri, name); // another may have come while this one waited
    return new Job(document, request, clientSettings(uri), this.documents, this.decorations);
  }

  private refuseSecond(uri: vscode.Uri, name: string): void {
    const job = this.of(uri);
    if (job !== undefined) {
      const what =
        job.session.phase === 'running'
          ? `Another edit is running in ${name}. Wait for it or cancel it.`
          : `${name} has changes to review. Accept or reject them first.`;
      throw new Failure('Busy', what);
    }
  }
}

async function refuseUnwritable(uri: vscode.Uri, name: string): Promise<void> {
  if (uri.scheme === 'untitled') {
    return;
  }
  if (uri.scheme !== 'file') {
    throw new Failure(
      'InvalidRequest',
      `${name} is no file on this machine. Save it as one first.`,
    );
  }
  if (await isReadOnly(uri)) {
    throw new Failure('ReadOnly', `${name} is read-only. Nothing was changed.`);
  }
}

/** By its mode: who may write anything could still, and would be asked when saving. */
async function isReadOnly(uri: vscode.Uri): Promise<boolean> {
  try {
    return ((await stat(uri.fsPath)).mode & 0o222) === 0;
  } catch {
    return false; // not there (any more): opening it says so, or it needn't be
  }
}
