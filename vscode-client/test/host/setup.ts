/** What is missing, and workspaces of more than one folder, in the extension host. */

import * as assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { GAVE_UP } from '../../src/words';
import { test } from './runner';
import * as s from './support';

export function setup(): void {
  test('a missing server is installed in a terminal; then the edit is made', async () => {
    const { editor, started } = await withoutServer();
    await s.configure('preview', 'never');
    const { code, message } = await s.apply('direct.py');
    assert.equal(code, 'ServerMissing');
    const bare = s.beside('bare');
    assert.ok(message?.startsWith(`The Python package apply-server isn't installed for ${bare}`));
    await s.press('apply-server', 'Install in a Terminal');
    await s.until(() => editor.document.getText() === s.after('direct.py'));
    const { name, execution } = started[0] ?? {};
    assert.equal(name, 'Install apply-server');
    assert.ok(execution instanceof vscode.ProcessExecution);
    assert.equal(execution.process, bare);
    const extension = vscode.extensions.getExtension('apply-server.apply-edit')?.extensionPath;
    assert.deepEqual(execution.args, [`${extension}/python/install.py`, `${extension}/python`]);
    assert.ok(vscode.window.terminals.some((terminal) => terminal.name.includes(name)));
  });

  test('a missing model is fetched in a terminal; then the edit is made again', async () => {
    await s.open('unknown.py');
    const before = s.pythons().length;
    assert.equal((await s.apply('unknown.py')).code, 'ModelUnavailable');
    await s.press('no answer for unknown.py', 'Fetch the Model');
    await s.until(() =>
      s
        .pythons()
        .slice(before)
        .some((line) => line.endsWith(` -m apply_server models pull ${MODEL}`)),
    );
    await s.press('no answer for unknown.py', 'Choose a Model'); // asked again
    await s.until(() => vscode.window.tabGroups.activeTabGroup.activeTab?.label === 'Settings');
  });

  test('a server that dies six times in three minutes is left alone until asked for', async () => {
    await s.run('applyEdit.restartServer'); // counts anew
    await s.configure('preview', 'never');
    for (let death = 1; death <= 6; death += 1) {
      const editor = await s.open('direct.py');
      s.applied(await s.apply('direct.py'));
      await s.run('workbench.action.files.revert');
      assert.equal(editor.document.isDirty, false);
      const started = s.servers();
      process.kill(started.at(-1) ?? 0, 'SIGKILL');
      if (death < 6) {
        await s.until(() => s.servers().length > started.length);
      }
    }
    const started = s.servers().length;
    await s.press(GAVE_UP, 'Restart');
    await s.until(() => s.servers().length === started + 1);
    s.applied(await s.apply('direct.py'));
  });

  test('each folder of a workspace has settings of its own', async () => {
    const uri = vscode.Uri.file(s.beside('second/plain.py'));
    const editor = await vscode.window.showTextDocument(uri, { preview: false });
    const marker = '# ... existing code ...\n';
    const snippet = `${marker}value_6 = 6\nvalue_7 = 77\nvalue_8 = 8\n${marker}`;
    s.applied(await s.run<s.Answer>('applyEdit.apply', { uri, snippet }));
    const wanted = s.before('plain.py').replace('value_7 = 7', 'value_7 = 77');
    assert.equal(editor.document.getText(), wanted, 'merged, the model not asked');
    assert.deepEqual(s.previews(), []);
    const outcome = s.apply('plain.py');
    await s.reviewed();
    await s.run('applyEdit.rejectAll');
    assert.deepEqual(await outcome, { status: 'cancelled' });
  });
}

const MODEL = 'qwen2.5-coder-1.5b-instruct';

/** With the Python that has no server, and the tasks that are started from now on. */
async function withoutServer(): Promise<{ editor: vscode.TextEditor; started: vscode.Task[] }> {
  const started: vscode.Task[] = [];
  vscode.tasks.onDidStartTask(({ execution }) => started.push(execution.task));
  await s.configure('pythonPath', s.beside('bare'));
  return { editor: await s.open('direct.py'), started };
}
