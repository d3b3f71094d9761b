/**
 * How rows look: whole-line colours of the theme, a sign in the gutter for each kind, and what
 * differs within a line. Must not know where rows come from.
 */

import * as vscode from 'vscode';
import type { Row, RowKind } from '../editSession';

type Look = Exclude<RowKind, 'same' | 'replaced'> | 'unverified' | 'changedText' | 'removedText';

export class Decorations implements vscode.Disposable {
  private readonly types: Readonly<Record<Look, vscode.TextEditorDecorationType>>;

  constructor(extension: vscode.Uri) {
    const line = (name: string, sign: string): vscode.TextEditorDecorationType =>
      vscode.window.createTextEditorDecorationType({
        isWholeLine: true,
        backgroundColor: color(`${name}Background`),
        borderColor: color(`${name}Border`),
        borderStyle: 'solid',
        borderWidth: '0 0 0 3px',
        overviewRulerColor: color(`${name}Border`),
        overviewRulerLane: vscode.OverviewRulerLane.Left,
        light: { gutterIconPath: icon(extension, sign, 'light'), gutterIconSize: 'contain' },
        dark: { gutterIconPath: icon(extension, sign, 'dark'), gutterIconSize: 'contain' },
      });
    const within = (name: string): vscode.TextEditorDecorationType =>
      vscode.window.createTextEditorDecorationType({
        backgroundColor: color(`${name}TextBackground`),
        borderRadius: '2px',
      });
    this.types = {
      added: line('added', 'added'),
      changed: line('changed', 'changed'),
      removed: line('removed', 'removed'),
      accepted: line('accepted', 'accepted'),
      unverified: vscode.window.createTextEditorDecorationType({
        isWholeLine: true,
        opacity: '0.65',
        overviewRulerColor: color('unverifiedBorder'),
        overviewRulerLane: vscode.OverviewRulerLane.Right,
        after: { contentText: ' ┆', color: color('unverifiedBorder') },
      }),
      changedText: within('changed'),
      removedText: within('removed'),
    };
  }

  /** Decorate an editor that shows exactly `rows`. */
  show(editor: vscode.TextEditor, rows: readonly Row[]): void {
    const ranges: Record<Look, vscode.Range[]> = {
      added: [],
      changed: [],
      removed: [],
      accepted: [],
      unverified: [],
      changedText: [],
      removedText: [],
    };
    rows.forEach((row, line) => {
      const whole = new vscode.Range(line, 0, line, row.text.length);
      if (row.kind !== 'same') {
        ranges[row.kind === 'replaced' ? 'removed' : row.kind].push(whole);
      }
      if (!row.verified) {
        ranges.unverified.push(whole);
      }
      if (row.differs !== undefined) {
        const look = row.kind === 'replaced' ? 'removedText' : 'changedText';
        ranges[look].push(new vscode.Range(line, row.differs[0], line, row.differs[1]));
      }
    });
    for (const look of Object.keys(ranges) as Look[]) {
      editor.setDecorations(this.types[look], ranges[look]);
    }
  }

  dispose(): void {
    vscode.Disposable.from(...Object.values(this.types)).dispose();
  }
}

function color(name: string): vscode.ThemeColor {
  return new vscode.ThemeColor(`applyEdit.${name}`);
}

function icon(extension: vscode.Uri, name: string, theme: string): vscode.Uri {
  return vscode.Uri.joinPath(extension, 'images', `${name}-${theme}.svg`);
}
