/** How the end of a job is told, and what can be done about a failure. */

import * as path from 'node:path';
import * as vscode from 'vscode';
import { diffOf, guardsOf, type Failure } from './failures';
import type { ApplyRequest } from './job';
import type { Outcome } from './jobs';
import type { StatusBar } from './status';
import * as words from './words';

/** What the actions of a failure's message do. */
export interface Remedies {
  retry(request: ApplyRequest): unknown;
  showDiff(request: ApplyRequest, diff: string): unknown;
  installServer(failure: Failure, request: ApplyRequest): unknown;
  fetchModel(request: ApplyRequest): unknown;
  openSetting(name: string): unknown;
  showLog(): unknown;
}

type Action = readonly [label: string, run: () => unknown];

export class Outcomes {
  constructor(
    private readonly status: StatusBar,
    private readonly log: vscode.LogOutputChannel,
    private readonly remedies: Remedies,
  ) {}

  /** Tell how `request` ended. Doesn't wait for an answer to what is shown. */
  show(request: ApplyRequest, outcome: Outcome): void {
    switch (outcome.status) {
      case 'applied': {
        const name = path.posix.basename(request.uri.path);
        const text = words.applied(name, outcome, outcome.resultLines, outcome.durationMs);
        this.end(`$(check) ${text}`, [text, ...outcome.warnings].join('\n'));
        outcome.warnings.forEach((warning) => {
          this.log.warn(warning);
        });
        return;
      }
      case 'unchanged':
        this.end(`$(check) ${words.NO_CHANGES}`, words.NO_CHANGES);
        void vscode.window.showInformationMessage(words.NO_CHANGES);
        return;
      case 'failed':
        this.fail(request, outcome.failure);
    }
  }

  private fail(request: ApplyRequest, failure: Failure): void {
    const { code, message } = failure;
    if (code === 'Cancelled') {
      this.end(`$(circle-slash) ${message}`, message);
      return;
    }
    this.log.error(`${code}: ${message} ${JSON.stringify(failure.details)}`);
    this.status.showEnd(`$(error) ${code}`, message);
    const serious = SERIOUS.has(code);
    const show = serious ? vscode.window.showErrorMessage : vscode.window.showWarningMessage;
    const actions = [...this.actions(request, failure), this.logAction()];
    void offer(show, message, actions);
  }

  private end(text: string, detail: string): void {
    this.log.info(detail);
    this.status.showEnd(text, detail);
  }

  private logAction(): Action {
    return ['Show Log', () => this.remedies.showLog()];
  }

  private actions(request: ApplyRequest, failure: Failure): Action[] {
    const { remedies } = this;
    const retry: Action = ['Retry', () => remedies.retry(request)];
    switch (failure.code) {
      case 'DocumentChanged':
      case 'ServerStopped':
      case 'TruncatedOutput':
        return [retry];
      case 'GuardBlocked':
        return this.guardActions(request, failure);
      case 'ServerMissing':
        return serverActions(remedies, request, failure);
      case 'ModelUnavailable':
        return [
          ['Fetch the Model', () => remedies.fetchModel(request)],
          ['Choose a Model', () => remedies.openSetting('model')],
        ];
      default:
        return [];
    }
  }

  private guardActions(request: ApplyRequest, failure: Failure): Action[] {
    const diff = diffOf(failure);
    const allowedGuards = [...(request.allowedGuards ?? []), ...guardsOf(failure)];
    return [
      ...(diff === undefined
        ? []
        : [['Show Diff', () => this.remedies.showDiff(request, diff)] as const]),
      ['Apply Anyway', () => this.remedies.retry({ ...request, allowedGuards })],
    ];
  }
}

/** Failures that something has to be done about; the others are the edit's or the moment's. */
const SERIOUS: ReadonlySet<string> = new Set([
  'InternalError',
  'ModelUnavailable',
  'ServerMissing',
  'ServerStopped',
]);

function serverActions(remedies: Remedies, request: ApplyRequest, failure: Failure): Action[] {
  const setPath: Action = ['Set the Python Path', () => remedies.openSetting('pythonPath')];
  return failure.details.python === undefined
    ? [setPath]
    : [['Install in a Terminal', () => remedies.installServer(failure, request)], setPath];
}

async function offer(
  show: (message: string, ...labels: string[]) => Thenable<string | undefined>,
  message: string,
  actions: readonly Action[],
): Promise<void> {
  const chosen = await show(message, ...actions.map(([label]) => label));
  await actions.find(([label]) => label === chosen)?.[1]();
}
