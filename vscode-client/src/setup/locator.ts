/** The command that runs the server, from the settings and what is installed. */

import { mkdir } from 'node:fs/promises';
import * as vscode from 'vscode';
import type { Executable } from 'vscode-languageclient/node';
import { ask, candidates } from '../candidates';
import { clientSettings } from '../config';
import { findPython, type Candidate } from '../python';

export class Locator {
  /** `folder` is ours: processes run in it, so that nothing is imported from the workspace. */
  constructor(
    private readonly folder: string,
    private readonly environment: string,
    private readonly version: string,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** The Python that has a fitting server; a Failure `ServerMissing` where none has. */
  async python(): Promise<Candidate> {
    await mkdir(this.folder, { recursive: true });
    const workspace = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
    const { pythonPath } = clientSettings();
    const all = await candidates(pythonPath, this.environment, workspace);
    const asked = async (path: string): ReturnType<typeof ask> => {
      const answer = await ask(path, this.folder);
      this.log.info(`Asked ${path}: ${JSON.stringify(answer)}`);
      return answer;
    };
    return findPython(all, asked, this.version);
  }

  async command(): Promise<Executable> {
    const { path } = await this.python();
    return {
      command: path,
      args: ['-m', 'apply_server', 'serve', '--stdio'],
      options: { cwd: this.folder },
    };
  }
}
