/**
 * The server process and the connection to it: found, started at first use, restarted when it dies.
 * Must not know what an edit is beyond the messages.
 */

import * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  ProgressType,
  RevealOutputChannelOn,
  type Executable,
  type LanguageClientOptions,
} from 'vscode-languageclient/node';
import { serverSettings } from './config';
import { Failure } from './failures';
import {
  METHODS,
  SECTION,
  type ApplyParams,
  type ApplyResult,
  type PartialResult,
} from './protocol';
import { RestartPolicy } from './restarts';
import { STOPPED } from './words';

const STOP_TIMEOUT_MS = 5000;

/** What the server says while it works on one request. */
export interface Listener {
  partial(part: PartialResult): void;
  /** Words for the progress notification, as "Loading the model". */
  message(text: string): void;
}

type Work = { kind: string; message?: string; title?: string };
const PARTIAL = new ProgressType<PartialResult>();
const WORK = new ProgressType<Work>();

/** Server commands would collide with ours of the same names; ours call the requests instead. */
class Client extends LanguageClient {
  override registerFeature(feature: Parameters<LanguageClient['registerFeature']>[0]): void {
    const { registrationType } = feature as { registrationType?: { method: string } };
    if (registrationType?.method !== 'workspace/executeCommand') {
      super.registerFeature(feature);
    }
  }
}

export class Server implements vscode.Disposable {
  private readonly restarts = new RestartPolicy();
  private client: Promise<Client> | undefined;
  private backOff: Promise<void> | undefined;
  private disposed = false;
  /** Whether a server came up since the last stop; one that keeps dying is still wanted. */
  private wanted = false;
  private tokens = 0;

  /** `locate` gives the command to run, or raises a Failure; `gaveUp` tells that it keeps dying. */
  constructor(
    private readonly log: vscode.LogOutputChannel,
    private readonly locate: () => Promise<Executable>,
    private readonly gaveUp: () => void,
  ) {}

  /** Send an edit; rejects with what the server says, or with a Failure where there is none. */
  async apply(
    params: ApplyParams,
    listener: Listener,
    cancel: vscode.CancellationToken,
  ): Promise<ApplyResult> {
    const client = await this.ready();
    const partialResultToken = this.token();
    const workDoneToken = this.token();
    const subscriptions = [
      client.onProgress(PARTIAL, partialResultToken, (part) => {
        listener.partial(part);
      }),
      client.onProgress(WORK, workDoneToken, ({ message, title }) => {
        listener.message(message ?? title ?? '');
      }),
    ];
    try {
      const sent: ApplyParams = { ...params, partialResultToken, workDoneToken };
      return await client.sendRequest(METHODS.apply, sent, cancel);
    } catch (error) {
      throw client.isRunning() ? error : new Failure('ServerStopped', STOPPED);
    } finally {
      vscode.Disposable.from(...subscriptions).dispose();
    }
  }

  /** The user is about to ask for an edit of `uri`: the server may read the file meanwhile. */
  async prepare(uri: vscode.Uri): Promise<void> {
    try {
      const client = await this.ready();
      await client.sendNotification(METHODS.prepare, { textDocument: { uri: uri.toString() } });
    } catch (error) {
      this.log.debug(`Nothing could be prepared: ${text(error)}`); // the edit will tell the user
    }
  }

  /** Hand the settings over anew, where a server runs. */
  async updateSettings(): Promise<void> {
    const settings = { [SECTION]: serverSettings() };
    const client = await this.client?.catch(() => undefined);
    try {
      await client?.sendNotification('workspace/didChangeConfiguration', { settings });
    } catch (error) {
      this.log.debug(`A server that ends needs no settings: ${text(error)}`);
    }
  }

  /** Stop the server and, if it had been started, start it anew. */
  async restart(): Promise<void> {
    this.restarts.reset();
    const { wanted } = this;
    await this.stop();
    if (wanted) {
      await this.ready();
    }
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.wanted = false;
    try {
      await (await client)?.dispose(STOP_TIMEOUT_MS);
    } catch (error) {
      this.log.debug(`The server didn't stop cleanly: ${String(error)}`);
    }
  }

  dispose(): void {
    this.disposed = true;
    void this.stop();
  }

  private async ready(): Promise<Client> {
    await this.backOff;
    this.client ??= this.start();
    const starting = this.client;
    try {
      const client = await starting;
      this.wanted = true;
      return client;
    } catch (error) {
      if (this.client === starting) {
        this.client = undefined;
      }
      throw error;
    }
  }

  private async start(): Promise<Client> {
    const command = await this.locate();
    this.log.info(`Starting ${command.command} ${(command.args ?? []).join(' ')}`);
    const client: Client = new Client(
      SECTION,
      'Apply Edit',
      command,
      this.options(() => client),
    );
    try {
      await client.start();
    } catch (error) {
      throw new Failure('ServerStopped', `The server didn't start: ${text(error)}`);
    }
    return client;
  }

  private options(client: () => Client): LanguageClientOptions {
    return {
      documentSelector: [{ scheme: 'file' }, { scheme: 'untitled' }],
      initializationOptions: serverSettings(),
      outputChannel: this.log,
      traceOutputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          void this.closed(client());
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
    };
  }

  /** The process ended though nobody asked for it. */
  private async closed(client: Client): Promise<void> {
    if (this.disposed || (await this.client?.catch(() => undefined)) !== client) {
      return; // it never came up, which its start has reported, or it was stopped
    }
    this.client = undefined;
    const delay = this.restarts.next();
    if (delay === undefined) {
      this.gaveUp();
      return;
    }
    this.log.warn(`The server stopped; starting it again in ${delay} ms.`);
    this.backOff = new Promise((resolve) => setTimeout(resolve, delay));
    await this.ready().catch((error: unknown) => {
      this.log.error(`The server can't be started again: ${text(error)}`);
    });
  }

  private token(): string {
    this.tokens += 1;
    return `applyEdit-${this.tokens}`;
  }
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
