/** What is done about a missing or failing server or model. Must not know about jobs. */

import * as vscode from 'vscode';
import { clientSettings } from '../config';
import { Failure, failureOf } from '../failures';
import { SECTION } from '../protocol';
import type { Documents } from '../review/documents';
import type { Server } from '../server';
import type { Installer } from './installer';
import type { Locator } from './locator';

export class Setup {
  constructor(
    private readonly installer: Installer,
    private readonly locator: Locator,
    private readonly server: Server,
    private readonly documents: Documents,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /**
   * Install the server, into an environment of our own unless a setting names a Python. `missing`
   * says what isn't there; without it that is found out first. Says whether there is a server now.
   */
  async installServer(missing?: Failure): Promise<boolean> {
    const failure = missing ?? (await this.missing());
    if (failure === undefined) {
      void vscode.window.showInformationMessage('apply-server is installed already.');
      return true;
    }
    const { python, source } = failure.details;
    if (typeof python !== 'string') {
      await this.tell(failure.message);
      return false;
    }
    const installed = await this.installer.installServer(python, source === 'setting');
    const still = installed ? await this.missing() : undefined;
    if (!installed || still !== undefined) {
      await this.tell(still?.message ?? 'The installation failed: the terminal says why.');
      return false;
    }
    return true;
  }

  /** Fetch the model of the settings; says whether that worked. */
  async fetchModel(): Promise<boolean> {
    try {
      const { path } = await this.locator.python();
      return await this.installer.fetchModel(path, clientSettings().model);
    } catch (error) {
      await this.tell(failureOf(error).message);
      return false;
    }
  }

  async restart(): Promise<void> {
    try {
      await this.server.restart();
    } catch (error) {
      await this.tell(failureOf(error).message);
    }
  }

  async showDiff(file: vscode.Uri, diff: string): Promise<void> {
    const uri = this.documents.uriFor(file, 'Blocked edit');
    this.documents.set(uri, diff);
    await vscode.window.showTextDocument(await this.documents.open(uri, 'diff'));
  }

  async openSetting(name: string): Promise<void> {
    await vscode.commands.executeCommand('workbench.action.openSettings', `${SECTION}.${name}`);
  }

  private async missing(): Promise<Failure | undefined> {
    try {
      await this.locator.python();
      return undefined;
    } catch (error) {
      return failureOf(error);
    }
  }

  private async tell(message: string): Promise<void> {
    this.log.error(message);
    if ((await vscode.window.showErrorMessage(message, 'Show Log')) !== undefined) {
      this.log.show(true);
    }
  }
}
