/**
 * The settings that the client reads itself, and what is handed to the server. Must not know what
 * is done with them; package.json describes all of them.
 */

import * as vscode from 'vscode';
import { SECTION } from './protocol';

export interface ClientSettings {
  readonly model: string;
  readonly verify: 'always' | 'whenAmbiguous' | 'never';
  readonly preview: 'always' | 'never';
  readonly autoAcceptDelay: number;
  readonly pythonPath: string;
}

/** Settings whose change needs another server process. */
export const RESTARTING = ['pythonPath', 'endpoint'].map((name) => `${SECTION}.${name}`);

export function clientSettings(scope?: vscode.Uri): ClientSettings {
  const section = vscode.workspace.getConfiguration(SECTION, scope ?? null); // null: of no file
  return {
    model: section.get('model', ''),
    verify: section.get('verify', 'always'),
    preview: section.get('preview', 'always'),
    autoAcceptDelay: section.get('autoAcceptDelay', 0),
    pythonPath: section.get('pythonPath', '').trim(),
  };
}

/** The whole section, for the server's start. */
export function serverSettings(): unknown {
  return JSON.parse(JSON.stringify(vscode.workspace.getConfiguration(SECTION)));
}
