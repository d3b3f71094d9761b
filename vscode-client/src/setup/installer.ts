/**
 * What is missing is installed in a terminal, where the user sees it. Must not know when that is
 * needed.
 */

import * as path from 'node:path';
import * as vscode from 'vscode';
import { interpreterOf } from '../candidates';

export class Installer {
  /** `environment`: the folder of our own virtual environment. */
  constructor(
    private readonly extension: vscode.ExtensionContext,
    readonly environment: string,
  ) {}

  /** Install the server that comes with this extension; says whether that worked. */
  async installServer(python: string, intoItself: boolean): Promise<boolean> {
    const script = this.extension.asAbsolutePath(path.join('python', 'install.py'));
    const wheels = this.extension.asAbsolutePath('python');
    const into = intoItself ? [] : [this.environment];
    return this.run('Install apply-server', python, [script, wheels, ...into]);
  }

  /** Fetch a model's weights now. */
  async fetchModel(python: string, model: string): Promise<boolean> {
    return this.run('Fetch the model', python, ['-m', 'apply_server', 'models', 'pull', model]);
  }

  /** The Python of our own environment, whether it is there or not. */
  get python(): string {
    return interpreterOf(this.environment);
  }

  private async run(name: string, command: string, args: string[]): Promise<boolean> {
    const cwd = this.extension.extensionPath; // the workspace must not be imported from
    const task = new vscode.Task(
      { type: 'process' },
      vscode.TaskScope.Global,
      name,
      'Apply Edit',
      new vscode.ProcessExecution(command, args, { cwd }),
    );
    task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, clear: true };
    const execution = await vscode.tasks.executeTask(task);
    return new Promise((resolve) => {
      const subscription = vscode.tasks.onDidEndTaskProcess((event) => {
        if (event.execution === execution) {
          subscription.dispose();
          resolve(event.exitCode === 0);
        }
      });
    });
  }
}
