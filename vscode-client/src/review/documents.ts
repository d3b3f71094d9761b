/** Read-only documents whose text we set: previews, results and diffs. Must not know what they show. */

import * as path from 'node:path';
import * as vscode from 'vscode';

export const SCHEME = 'apply-edit';

export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event; // registering reads it
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(
    SCHEME,
    this,
  );
  private count = 0;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? '';
  }

  /** A new name, shown as `label` before the file's own. */
  uriFor(file: vscode.Uri, label: string): vscode.Uri {
    this.count += 1;
    const name = `${label}: ${path.posix.basename(file.path)}`;
    return vscode.Uri.from({
      scheme: SCHEME,
      path: path.posix.join('/', path.posix.dirname(file.path), name),
      query: String(this.count),
    });
  }

  set(uri: vscode.Uri, text: string): void {
    this.texts.set(uri.toString(), text);
    this.changed.fire(uri);
  }

  delete(uri: vscode.Uri): void {
    this.texts.delete(uri.toString());
  }

  /** Open one of ours in a file's language. */
  async open(uri: vscode.Uri, languageId: string): Promise<vscode.TextDocument> {
    const document = await vscode.workspace.openTextDocument(uri);
    return document.languageId === languageId
      ? document
      : vscode.languages.setTextDocumentLanguage(document, languageId);
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}

/** The tabs that show `uri`, in all groups. */
export function tabsOf(uri: vscode.Uri): vscode.Tab[] {
  const wanted = uri.toString();
  return allTabs().filter((tab) => uriOf(tab)?.toString() === wanted);
}

/** Previews that an extension host left open when it ended: what they showed is gone. */
export async function closeLeftovers(): Promise<void> {
  await vscode.window.tabGroups.close(allTabs().filter((tab) => uriOf(tab)?.scheme === SCHEME));
}

export function uriOf(tab: vscode.Tab): vscode.Uri | undefined {
  const { input } = tab;
  if (input instanceof vscode.TabInputText) {
    return input.uri;
  }
  return input instanceof vscode.TabInputTextDiff ? input.modified : undefined;
}

function allTabs(): vscode.Tab[] {
  return vscode.window.tabGroups.all.flatMap((group) => group.tabs);
}
