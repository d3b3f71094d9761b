/** Where a Python may be, and how it is asked. Must not know what makes one fit. */

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { parseAnswer, QUESTION, type Answer, type Candidate } from './python';

const ASK_TIMEOUT_MS = 30_000;

/** The part of the Python extension's API that is used here. */
interface PythonExtension {
  readonly environments: { getActiveEnvironmentPath(): { readonly path: string } };
}

/** The setting; else the Python extension's interpreter, those on the path, and our own. */
export async function candidates(
  setting: string,
  ownEnvironment: string,
  folder: string | undefined,
): Promise<Candidate[]> {
  if (setting !== '') {
    return [{ path: expanded(setting, folder), source: 'setting' }];
  }
  const interpreter = await activeInterpreter();
  const own = interpreterOf(ownEnvironment);
  return [
    ...(interpreter === undefined ? [] : [candidate(interpreter, 'interpreter')]),
    ...(process.platform === 'win32' ? ['py', 'python'] : ['python3']).map((name) =>
      candidate(name, 'path'),
    ),
    ...(existsSync(own) ? [candidate(own, 'installed')] : []),
  ];
}

/** The Python of a virtual environment. */
export function interpreterOf(environment: string): string {
  return process.platform === 'win32'
    ? path.join(environment, 'Scripts', 'python.exe')
    : path.join(environment, 'bin', 'python');
}

/** What the Python at `command` says of itself. Not run in the workspace: it must not be imported from. */
export function ask(command: string, cwd: string): Promise<Answer> {
  return new Promise((resolve) => {
    const options = { cwd, timeout: ASK_TIMEOUT_MS, windowsHide: true };
    execFile(command, ['-c', QUESTION], options, (error, stdout, stderr) => {
      resolve(error === null ? parseAnswer(stdout) : { error: reason(error, stderr) });
    });
  });
}

function reason(error: Error & { code?: unknown }, stderr: string): string {
  if (error.code === 'ENOENT') {
    return 'no such file';
  }
  return stderr.trim().split('\n').at(-1) || error.message;
}

function candidate(command: string, source: Candidate['source']): Candidate {
  return { path: command, source };
}

function expanded(setting: string, folder: string | undefined): string {
  return setting
    .replace(/^~(?=$|[\\/])/, homedir())
    .replaceAll('${workspaceFolder}', folder ?? '')
    .replaceAll('${userHome}', homedir());
}

async function activeInterpreter(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension<PythonExtension>('ms-python.python');
  try {
    const api = await extension?.activate();
    return api?.environments.getActiveEnvironmentPath().path;
  } catch {
    return undefined; // a broken Python extension must not take this one along
  }
}
