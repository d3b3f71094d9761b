/** What is built from what. Everything else is told what it needs. */

import * as path from 'node:path';
import * as vscode from 'vscode';
import { Commands, type ApplyAnswer, type ApplyArguments } from './commands';
import { RESTARTING } from './config';
import { Contexts } from './contexts';
import { Instructions } from './instruction';
import { Jobs } from './jobs';
import { Outcomes } from './outcomes';
import { showProgress } from './progress';
import { SECTION } from './protocol';
import { Lenses } from './review/codeLens';
import { Decorations } from './review/decorations';
import { closeLeftovers, Documents } from './review/documents';
import { Server } from './server';
import { Installer } from './setup/installer';
import { Locator } from './setup/locator';
import { Setup } from './setup/setup';
import { StatusBar } from './status';
import { GAVE_UP } from './words';

/** What `vscode.extensions.getExtension(…).exports` offers; the same as the command. */
export interface Api {
  apply(edit: ApplyArguments): Promise<ApplyAnswer | undefined>;
}

export function activate(context: vscode.ExtensionContext): Api {
  const log = vscode.window.createOutputChannel('Apply Edit', { log: true });
  const folder = context.globalStorageUri.fsPath;
  const installer = new Installer(context, path.join(folder, 'environment'));
  const { version } = context.extension.packageJSON as { version: string };
  const locator = new Locator(folder, installer.environment, version, log);
  const server = new Server(log, () => locator.command(), gaveUp);
  const documents = new Documents();
  const decorations = new Decorations(context.extensionUri);
  const status = new StatusBar();
  const jobs = new Jobs(
    (params, listener, cancel) => server.apply(params, listener, cancel),
    (job, sent) => void showProgress(job, sent),
    documents,
    decorations,
  );
  const lenses = new Lenses((uri) => jobs.of(uri));
  const contexts = new Contexts(jobs);
  const setup = new Setup(installer, locator, server, documents, log);
  const outcomes = new Outcomes(status, log, {
    retry: (request) => commands.start(request),
    showDiff: (request, diff) => setup.showDiff(request.uri, diff),
    installServer: async (failure, request) => {
      if (await setup.installServer(failure)) {
        await commands.start(request);
      }
    },
    fetchModel: async (request) => {
      if (await setup.fetchModel()) {
        await commands.start(request);
      }
    },
    openSetting: (name) => setup.openSetting(name),
    showLog: () => {
      log.show(true);
    },
  });
  const commands = new Commands(
    jobs,
    new Instructions(context.globalState),
    documents,
    (uri) => void server.prepare(uri),
    (request, outcome) => {
      outcomes.show(request, outcome);
    },
  );

  const refresh = (): void => {
    lenses.refresh(jobs.all);
    contexts.refresh();
    const job = jobs.current ?? jobs.all.at(-1);
    if (job !== undefined) {
      status.showJob(job);
    }
  };
  context.subscriptions.push(log, server, documents, decorations, status, jobs, lenses);
  context.subscriptions.push(
    jobs.onDidChange(refresh),
    vscode.window.onDidChangeActiveTextEditor(refresh),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (RESTARTING.some((name) => event.affectsConfiguration(name))) {
        void setup.restart();
      } else if (event.affectsConfiguration(SECTION)) {
        void server.updateSettings();
      }
    }),
    ...registrations(commands, setup, log),
  );
  void closeLeftovers();
  return { apply: (edit) => commands.apply(edit) };

  function gaveUp(): void {
    log.error(GAVE_UP);
    void vscode.window.showErrorMessage(GAVE_UP, 'Restart', 'Show Log').then((chosen) => {
      if (chosen === 'Restart') {
        void setup.restart();
      } else if (chosen === 'Show Log') {
        log.show(true);
      }
    });
  }
}

function registrations(
  commands: Commands,
  setup: Setup,
  log: vscode.LogOutputChannel,
): vscode.Disposable[] {
  const handlers: Record<string, (argument?: unknown) => unknown> = {
    apply: (given) => commands.apply(given),
    applyFromClipboard: () => commands.applyFromClipboard(),
    acceptAll: () => {
      commands.decideAll('accepted');
    },
    rejectAll: () => {
      commands.decideAll('rejected');
    },
    acceptHunk: (hunk) => {
      commands.decideHunk('accepted', hunk);
    },
    rejectHunk: (hunk) => {
      commands.decideHunk('rejected', hunk);
    },
    nextHunk: () => commands.move(1),
    previousHunk: () => commands.move(-1),
    showDiff: () => commands.showDiff(),
    cancel: () => {
      commands.cancel();
    },
    retry: () => commands.retry(),
    showLog: () => {
      log.show(true);
    },
    installServer: () => setup.installServer(),
    fetchModel: () => setup.fetchModel(),
    restartServer: () => setup.restart(),
  };
  return Object.entries(handlers).map(([name, handler]) =>
    vscode.commands.registerCommand(`applyEdit.${name}`, handler),
  );
}
