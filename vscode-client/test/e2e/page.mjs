// The packaged extension through the workbench's page: palette, keys, buttons, notifications. What is
// asserted is on disk, after saving.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { actions, condition } from './actions.mjs';
import { answers, files, snippet } from './cases.cjs';
import { openWorkbench } from './workbench.mjs';

export async function runPageTests() {
  fs.mkdirSync('artefacts', { recursive: true });
  const vsix = path.resolve('apply-edit.vsix');
  const workbench = await openWorkbench({ files, answers, vsix, passDelayMs: 150, trust: true });
  const { page } = workbench;
  const ready = () => page.waitForSelector('.monaco-workbench .statusbar-item');
  layTrap(workbench);
  let failed = 0;
  try {
    await page.goto(`${workbench.address}/?folder=${workbench.workspace}`);
    await ready();
    const only = new RegExp(process.env.ONLY ?? '');
    const all = Object.entries(tests(page, workbench, ready));
    for (const [name, test] of all.filter(([name]) => only.test(name))) {
      const started = Date.now();
      let verdict = 'ok';
      try {
        await test();
      } catch (error) {
        failed += 1;
        const focus = await page.evaluate(() => document.activeElement?.className);
        verdict = `not ok, focus on ${focus}: ${error.stack}`;
        await page.screenshot({ path: `artefacts/failed-${name.replaceAll(/\W+/g, '-')}.png` });
        await page.reload(); // no dialog stays in the way of the next test
        await ready();
      }
      console.log(`${name} (${Date.now() - started} ms): ${verdict}`);
    }
  } finally {
    await workbench.stop();
  }
  console.log(`${failed} failed`);
  return failed === 0;
}

/** A workspace that brings its own Python, which tells that it was run. */
function layTrap({ folder, workspace, python }) {
  const trap = path.join(folder, 'trap');
  const script = `#!/bin/sh\ntouch '${folder}/trapped'\nexec '${python}' "$@"\n`;
  fs.writeFileSync(trap, script, { mode: 0o755 });
  fs.mkdirSync(path.join(workspace, '.vscode'));
  const settings = JSON.stringify({ 'applyEdit.pythonPath': trap });
  fs.writeFileSync(path.join(workspace, '.vscode', 'settings.json'), settings);
}

function tests(page, workbench, ready) {
  const { closeAll, command, instruct, lens, open, read, rows, saved, status, tab, toast } =
    actions(workbench);
  const picture = (name) => page.screenshot({ path: `artefacts/${name}.png` });

  /** An edit is running, and shows something. */
  const running = () => page.locator('.view-lines', { hasText: 'g_14' }).waitFor();
  const restricted = status('Restricted Mode');
  const serverPid = () => {
    const started = fs.readFileSync(path.join(workbench.folder, 'started'), 'utf8').split('\n');
    return Number.parseInt(started.filter((line) => line.includes(' serve ')).at(-1), 10);
  };

  const preview = page.locator('.tab[data-resource-name^="Apply Edit:"]');
  const gone = async (pid) => {
    await preview.waitFor({ state: 'detached' });
    await condition(
      () => !isRunning(pid),
      () => `the server ${pid} still runs`,
    );
  };

  /** Reload the window and open the file. Which tabs come back by themselves is a matter of luck. */
  async function reload(name) {
    const pid = serverPid();
    await preview.waitFor();
    await page.reload();
    await ready();
    await open(name);
    await gone(pid);
  }

  return {
    async 'a workspace that is not trusted does not choose the Python'() {
      await restricted.waitFor();
      await open('plain.py');
      await instruct('Change two values.');
      await lens('Accept All').waitFor();
      assert.ok(!fs.existsSync(path.join(workbench.folder, 'trapped')));
      await page.keyboard.press('Control+Shift+Enter');
      await saved('plain.py', answers['plain.py']);
      await page.keyboard.press('Control+Z');
      await saved('plain.py', files['plain.py']);
      await closeAll();
    },

    async 'once it is trusted, its Python runs the server'() {
      await command('Workspaces: Manage Workspace Trust');
      const editor = page.locator('.workspace-trust-editor');
      await editor.locator('.monaco-button', { hasText: 'Trust' }).first().click();
      await restricted.waitFor({ state: 'detached' });
      await condition(() => fs.existsSync(path.join(workbench.folder, 'trapped')));
      await closeAll();
    },

    async 'an instruction from the palette, accepted with the key, undone once'() {
      await open('cart.py');
      await page.keyboard.press('Control+Home');
      await instruct('Give items a discount.');
      await lens('Accept All').waitFor();
      await page.locator('.part.editor').screenshot({ path: 'artefacts/preview.png' });
      await page.keyboard.press('Control+Shift+Enter');
      await tab('cart.py').waitFor();
      await status(/Applied cart\.py \+3 −2 · .* copied/).waitFor();
      await picture('applied');
      await saved('cart.py', answers['cart.py']);
      await page.keyboard.press('Control+Z');
      await saved('cart.py', files['cart.py']);
    },

    async 'the last instruction comes first; a change is rejected by its button'() {
      await command('Apply Edit: Apply Edit…');
      await rows('Give items a discount.').waitFor();
      await picture('history');
      await page.keyboard.press('Enter');
      await lens('Accept All').waitFor();
      await lens('Reject').nth(2).click();
      await condition(async () => (await lens('Change 2 of 3').count()) === 0);
      await page.keyboard.press('Control+Alt+Y');
      await condition(async () => (await lens('Change').count()) === 1);
      await page.keyboard.press('Control+Alt+Y');
      await tab('cart.py').waitFor();
      const wanted = files['cart.py']
        .replace('quantity: int = 1\n', 'quantity: int = 1\n    discount: float = 0.0\n')
        .replace('        # Legacy: kept for old callers.\n', '');
      await saved('cart.py', wanted);
      await page.keyboard.press('Control+Z');
      await saved('cart.py', files['cart.py']);
      await closeAll();
    },

    async 'a snippet from the clipboard, rejected with the key'() {
      await open('snippet.py');
      await page.evaluate((text) => navigator.clipboard.writeText(text), snippet);
      await command('Apply Edit from Clipboard');
      await lens('Accept All').waitFor();
      await picture('snippet');
      await page.keyboard.press('Control+Shift+Backspace');
      await tab('snippet.py').waitFor();
      assert.equal(await page.locator('.tab.dirty').count(), 0);
      assert.equal(read('snippet.py'), files['snippet.py']);
      await closeAll();
    },

    async 'the progress notification cancels'() {
      await open('slow.py');
      await instruct('Rename all.');
      const notification = toast('Apply Edit: slow.py');
      await notification.waitFor();
      await running();
      await condition(async () => /\d+%/.test(await notification.innerText()));
      await picture('running');
      await notification.locator('.monaco-button', { hasText: 'Cancel' }).click();
      await tab('slow.py').waitFor();
      await status('Cancelled. Nothing was changed.').waitFor();
      assert.equal(read('slow.py'), files['slow.py']);
    },

    async 'Escape cancels'() {
      await instruct('Rename all again.');
      await running();
      await page.keyboard.press('Escape');
      await tab('slow.py').waitFor();
      await status('Cancelled. Nothing was changed.').waitFor();
      await closeAll();
    },

    async 'typing in the file ends the edit; Retry makes it again'() {
      await open('typed.py');
      await instruct('Rename all.');
      await running();
      await page.locator('.tab[data-resource-name="typed.py"]').click();
      await page.locator('.editor-instance .view-lines').first().click();
      await page.keyboard.press('Control+Home');
      await page.keyboard.type('#');
      const warning = toast('The file changed since it was read.');
      await warning.waitFor();
      await picture('file-changed');
      assert.equal(await warning.locator('.monaco-button', { hasText: 'Show Log' }).count(), 1);
      await warning.locator('.monaco-button', { hasText: 'Retry' }).click();
      await running();
      await page.keyboard.press('Escape');
      await tab('typed.py').waitFor();
      await saved('typed.py', `#${files['typed.py']}`);
      await closeAll();
    },

    async 'reloading the window during an edit loses nothing'() {
      await open('slow2.py');
      await page.keyboard.press('Control+Home');
      await page.keyboard.type('#');
      await instruct('Rename all.');
      await running();
      await reload('slow2.py');
      await saved('slow2.py', `#${files['slow2.py']}`);
      await closeAll();
    },

    async 'reloading the window during the review loses nothing'() {
      await open('other.py');
      await instruct('Change two values.');
      await lens('Accept All').waitFor();
      await reload('other.py');
      assert.equal(await page.locator('.tab.dirty').count(), 0);
      assert.equal(read('other.py'), files['other.py']);
      await instruct('Change two values.'); // as ever
      await lens('Accept All').waitFor();
      await page.keyboard.press('Control+Shift+Enter');
      await saved('other.py', answers['other.py']);
      await closeAll();
    },

    async 'an extension host that dies during the review loses nothing'() {
      await open('plain.py');
      await instruct('Change two values.');
      await lens('Accept All').waitFor();
      const pid = serverPid();
      process.kill(parentOf(pid), 'SIGKILL');
      await gone(pid);
      await tab('plain.py').waitFor();
      assert.equal(await page.locator('.tab.dirty').count(), 0);
      assert.equal(read('plain.py'), files['plain.py']);
      await closeAll();
    },
  };
}

function parentOf(pid) {
  return Number.parseInt(
    execFileSync('ps', ['-o', 'ppid=', '-p', String(pid)], { encoding: 'utf8' }),
    10,
  );
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
