/** Whole edits in the extension host: previewed, decided, applied, undone. */

import * as assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { snippet } from '../e2e/cases.cjs';
import { test } from './runner';
import * as s from './support';

/** Themes, how the page calls their kinds, and how package.json does. */
const THEMES = [
  ['Default Dark Modern', 'vs-dark', 'dark'],
  ['Default Light Modern', 'vs', 'light'],
  ['Default High Contrast', 'hc-black', 'highContrast'],
  ['Default High Contrast Light', 'hc-light', 'highContrastLight'],
] as const;

export function edits(): void {
  test('an instruction is previewed, accepted, and undone in one step', async () => {
    const editor = await s.open('cart.py');
    const outcome = s.apply('cart.py');
    await s.reviewed();
    assert.equal(editor.document.getText(), s.before('cart.py'), 'a preview leaves the file alone');
    assert.equal(editor.document.isDirty, false);
    await s.run('applyEdit.acceptAll');
    assert.deepEqual(await outcome, { status: 'applied', added: 3, removed: 2 });
    assert.equal(editor.document.getText(), s.after('cart.py'));
    assert.equal(s.onDisk('cart.py'), s.before('cart.py'), 'apply never saves');
    assert.deepEqual(s.previews(), []);
    assert.equal(vscode.window.activeTextEditor?.document, editor.document);
    await s.run('undo');
    assert.equal(editor.document.getText(), s.before('cart.py'));
    assert.equal(editor.document.isDirty, false);
    await s.run('redo');
    assert.equal(editor.document.getText(), s.after('cart.py'));
  });

  test('undo of an edit leaves what was typed before it', async () => {
    const editor = await s.open('plain.py');
    await editor.edit((builder) => {
      builder.insert(new vscode.Position(7, 11), '0');
    });
    await s.configure('preview', 'never');
    const typed = editor.document.getText();
    await s.apply('plain.py');
    assert.notEqual(editor.document.getText(), typed);
    await s.run('undo');
    assert.equal(editor.document.getText(), typed);
  });

  test('a snippet from the clipboard is merged', async () => {
    const editor = await s.open('snippet.py');
    await vscode.env.clipboard.writeText(snippet);
    const outcome = s.run<s.Answer>('applyEdit.applyFromClipboard');
    const preview = await s.reviewed();
    assert.ok(preview.document.getText().includes('def count'));
    await s.run('applyEdit.acceptAll');
    s.applied(await outcome);
    assert.equal(editor.document.getText(), s.after('snippet.py'));
  });

  test('one change is rejected, the others are applied together', async () => {
    const editor = await s.open('cart.py');
    const outcome = s.apply('cart.py');
    const preview = await s.reviewed();
    assert.deepEqual(
      (await s.lenses(preview)).filter((title) => title.startsWith('Change')),
      ['Change 1 of 3 · +1 −0', 'Change 2 of 3 · +2 −1', 'Change 3 of 3 · +0 −1'],
    );
    await s.run('applyEdit.rejectHunk', 1);
    await s.run('applyEdit.acceptHunk', 2);
    assert.equal(editor.document.getText(), s.before('cart.py'));
    await s.run('applyEdit.acceptHunk', 0);
    assert.deepEqual(await outcome, { status: 'applied', added: 1, removed: 1 });
    const wanted = s
      .before('cart.py')
      .replace('quantity: int = 1\n', 'quantity: int = 1\n    discount: float = 0.0\n')
      .replace('        # Legacy: kept for old callers.\n', '');
    assert.equal(editor.document.getText(), wanted);
    await s.run('undo');
    assert.equal(editor.document.getText(), s.before('cart.py'));
  });

  test('rejecting all restores text, dirty flag, cursor and scroll', async () => {
    const editor = await s.open('cart.py');
    const cursor = new vscode.Selection(20, 8, 20, 13);
    editor.selection = cursor;
    const outcome = s.run<s.Answer>('applyEdit.apply', {
      uri: s.uriOf('cart.py').toString(),
      instruction: 'Do it.',
    });
    await s.reviewed();
    await s.run('applyEdit.rejectAll');
    assert.deepEqual(await outcome, { status: 'cancelled' });
    const back = vscode.window.activeTextEditor;
    assert.equal(back?.document.uri.toString(), s.uriOf('cart.py').toString());
    assert.equal(back.document.getText(), s.before('cart.py'));
    assert.equal(back.document.isDirty, false);
    assert.ok(back.selection.isEqual(cursor));
  });

  test('after applying, the cursor is on the same text', async () => {
    const editor = await s.open('cart.py');
    editor.selection = new vscode.Selection(26, 8, 26, 12);
    const text = editor.document.getText(editor.selection);
    const outcome = s.apply('cart.py');
    await s.reviewed();
    await s.run('applyEdit.acceptAll');
    await outcome;
    const back = vscode.window.activeTextEditor;
    assert.equal(back?.document.getText(back.selection), text);
    assert.equal(back.selection.start.line, 28);
  });

  test('pictures in light, dark and high contrast themes', async () => {
    await s.open('cart.py');
    const outcome = s.apply('cart.py');
    await s.reviewed();
    await s.run('applyEdit.acceptHunk', 2);
    const settings = vscode.workspace.getConfiguration('workbench');
    for (const [id, name, kind] of THEMES) {
      await settings.update('colorTheme', id, vscode.ConfigurationTarget.Global);
      await s.picture(name, s.colors(kind, 'addedBorder', 'changedBorder', 'removedBorder'));
    }
    await settings.update('colorTheme', undefined, vscode.ConfigurationTarget.Global);
    await s.run('applyEdit.rejectAll');
    await outcome;
  });

  test('next and previous go round the undecided changes', async () => {
    await s.open('cart.py');
    const outcome = s.apply('cart.py');
    const preview = await s.reviewed();
    const visited: number[] = [];
    preview.selection = new vscode.Selection(0, 0, 0, 0);
    for (const command of ['nextHunk', 'nextHunk', 'nextHunk', 'nextHunk', 'previousHunk']) {
      await s.run(`applyEdit.${command}`);
      visited.push(preview.selection.active.line);
    }
    assert.deepEqual(visited, [10, 23, 32, 10, 32]);
    await s.run('applyEdit.rejectAll');
    await outcome;
  });

  test('without preview, the edit is applied at once', async () => {
    await s.configure('preview', 'never');
    const editor = await s.open('direct.py');
    s.applied(await s.apply('direct.py'));
    assert.equal(editor.document.getText(), s.after('direct.py'));
    assert.deepEqual(s.previews(), []);
  });

  test('after the delay of the setting, all is accepted', async () => {
    await s.configure('autoAcceptDelay', 50);
    const editor = await s.open('plain.py');
    s.applied(await s.apply('plain.py'));
    assert.equal(editor.document.getText(), s.after('plain.py'));
  });

  test('nothing to change', async () => {
    await s.open('same.py');
    assert.deepEqual(await s.apply('same.py'), { status: 'unchanged' });
  });

  test('a CRLF file keeps its line endings', async () => {
    await s.configure('preview', 'never');
    const editor = await s.open('crlf.py');
    s.applied(await s.apply('crlf.py'));
    assert.equal(editor.document.eol, vscode.EndOfLine.CRLF);
    assert.equal(editor.document.getText(), s.after('crlf.py'));
    await s.run('undo');
    assert.equal(editor.document.getText(), s.before('crlf.py'));
  });

  test('a file without a final newline gets none', async () => {
    const editor = await s.open('unended.py');
    const outcome = s.apply('unended.py');
    const preview = await s.reviewed();
    assert.equal(preview.document.getText(), 'a = 1\nb = 2\nb = 3\nc = 4');
    await s.run('applyEdit.acceptAll');
    await outcome;
    assert.equal(editor.document.getText(), s.after('unended.py'));
  });

  test('an untitled document', async () => {
    await s.configure('verify', 'never');
    const content = 'def a():\n    return 1\n\n\ndef b():\n    return 2\n';
    const document = await vscode.workspace.openTextDocument({ language: 'python', content });
    await vscode.window.showTextDocument(document);
    const outcome = s.run<s.Answer>('applyEdit.apply', {
      uri: document.uri,
      snippet: 'def b():\n    return 3\n',
    });
    await s.reviewed();
    await s.run('applyEdit.acceptAll');
    s.applied(await outcome);
    assert.equal(document.getText(), content.replace('return 2', 'return 3'));
  });

  test('the exported API does what the command does', async () => {
    interface Api {
      apply(edit: { uri: vscode.Uri; instruction?: string }): Promise<s.Answer>;
    }
    await s.configure('preview', 'never');
    const extension = vscode.extensions.getExtension<Api>('apply-server.apply-edit');
    const answer = await extension?.exports.apply({
      uri: s.uriOf('other.py'),
      instruction: 'Do it.',
    });
    assert.equal(answer?.status, 'applied');
    assert.equal(
      vscode.workspace.textDocuments.find(({ uri }) => uri.path.endsWith('/other.py'))?.getText(),
      s.after('other.py'),
    );
  });
}
