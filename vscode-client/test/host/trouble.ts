/** What goes wrong, or is stopped, in the extension host: nothing of the user's is ever lost. */

import * as assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as vscode from 'vscode';
import { test } from './runner';
import * as s from './support';

const PASS_MS = 150;
const running = (): Promise<vscode.TextEditor> => s.preview((text) => text.includes('g_0'));

export function trouble(): void {
  test('cancel midway', async () => {
    await s.paced(PASS_MS);
    const editor = await s.open('slow.py');
    const outcome = s.apply('slow.py');
    await running();
    await s.preview((text) => text.includes('g_14')); // it goes on being shown
    await s.run('applyEdit.cancel');
    assert.deepEqual(await outcome, { status: 'cancelled' });
    assert.equal(editor.document.getText(), s.before('slow.py'));
    assert.equal(editor.document.isDirty, false);
    assert.deepEqual(s.previews(), []);
  });

  test('closing the preview cancels', async () => {
    await s.open('slow.py');
    const outcome = s.apply('slow.py');
    await running();
    await vscode.window.tabGroups.close(s.previews());
    assert.deepEqual(await outcome, { status: 'cancelled' });
  });

  test('closing the file cancels, and closes the preview', async () => {
    await s.open('slow.py');
    const outcome = s.apply('slow.py');
    await running();
    const file = vscode.window.tabGroups.all
      .flatMap(({ tabs }) => tabs)
      .filter(({ label }) => label === 'slow.py');
    await vscode.window.tabGroups.close(file);
    assert.deepEqual(await outcome, { status: 'cancelled' });
    assert.deepEqual(s.previews(), []);
  });

  test('typing during the edit ends it and keeps what was typed', async () => {
    const editor = await s.open('typed.py');
    const outcome = s.apply('typed.py');
    await running();
    const edit = new vscode.WorkspaceEdit();
    edit.insert(editor.document.uri, new vscode.Position(0, 0), '# mine\n');
    assert.ok(await vscode.workspace.applyEdit(edit));
    assert.deepEqual(await outcome, {
      status: 'failed',
      code: 'DocumentChanged',
      message: 'The file changed since it was read.',
    });
    assert.equal(editor.document.getText(), `# mine\n${s.before('typed.py')}`);
    assert.deepEqual(s.previews(), []);
  });

  test('a second edit of the same file is refused, one of another file works', async () => {
    await s.open('slow2.py');
    const first = s.apply('slow2.py');
    await running();
    const second = await s.apply('slow2.py');
    assert.equal(second.code, 'Busy');
    await s.configure('preview', 'never');
    const other = s.apply('other.py');
    await s.open('slow2.py');
    await s.run('applyEdit.cancel');
    assert.equal((await first).status, 'cancelled');
    s.applied(await other);
  });

  test('two files at once are each reviewed in their own place', async () => {
    await s.paced(20);
    const plain = await s.open('plain.py');
    const first = s.apply('plain.py');
    await s.reviewed();
    const other = await s.open('other.py');
    const second = s.apply('other.py');
    await s.preview((text) => text.includes('x = 30'));
    await s.reviewed();
    await s.run('applyEdit.acceptAll');
    s.applied(await second);
    assert.equal(other.document.getText(), s.after('other.py'));
    assert.equal(plain.document.getText(), s.before('plain.py'));
    await s.open('plain.py');
    await s.run('applyEdit.acceptAll');
    s.applied(await first);
    assert.equal(plain.document.getText(), s.after('plain.py'));
  });

  test('a read-only file is refused', async () => {
    fs.chmodSync(s.uriOf('locked.py').fsPath, 0o444);
    const editor = await s.open('locked.py');
    assert.deepEqual(await s.apply('locked.py'), {
      status: 'failed',
      code: 'ReadOnly',
      message: 'locked.py is read-only. Nothing was changed.',
    });
    assert.equal(editor.document.getText(), s.before('locked.py'));
  });

  test('a guard blocks, and is overridden only by the user', async () => {
    const editor = await s.open('gone.py');
    const answer = await s.apply('gone.py');
    assert.equal(answer.code, 'GuardBlocked');
    assert.equal(editor.document.getText(), s.before('gone.py'));
  });

  test('a server that is killed is started again', async () => {
    await s.paced(PASS_MS);
    const editor = await s.open('killed.py');
    const outcome = s.apply('killed.py');
    await running();
    const started = s.servers();
    process.kill(started.at(-1) ?? 0, 'SIGKILL');
    const { code, message } = await outcome;
    assert.equal(code, 'ServerStopped');
    assert.equal(message, 'The server stopped. Nothing was changed.');
    assert.equal(editor.document.getText(), s.before('killed.py'));
    await s.until(() => s.servers().length > started.length);
    await s.configure('preview', 'never');
    s.applied(await s.apply('direct.py'));
  });

  test('another Python that has no server is told about', async () => {
    const python = vscode.workspace.getConfiguration('applyEdit').get('pythonPath');
    await s.configure('pythonPath', '/no/such/python');
    await s.open('plain.py');
    const answer = await s.apply('plain.py');
    await s.configure('pythonPath', python);
    assert.deepEqual(answer, {
      status: 'failed',
      code: 'ServerMissing',
      message: "/no/such/python can't be run as Python: no such file.",
    });
    await s.configure('preview', 'never');
    s.applied(await s.apply('direct.py'));
  });

  test('a document of another kind is refused', async () => {
    const uri = vscode.Uri.parse('output:nothing.txt');
    const answer = await s.run<s.Answer>('applyEdit.apply', { uri, instruction: 'Do it.' });
    assert.equal(answer.code, 'InvalidRequest');
  });
}
