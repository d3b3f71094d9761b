// From nothing to a first applied edit with the default model, doing only what the extension says: a
// fresh profile, and a Python without apply-server. Fetches libraries and, unless it is there, the
// model: gigabytes, and minutes of work. Run only where FIRST_EDIT is set.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { actions } from './actions.mjs';
import { answers, files, snippet } from './cases.cjs';
import { openWorkbench } from './workbench.mjs';

const PATIENCE_MS = 30 * 60_000;
const PYTHON = process.env.PYTHON ?? 'python3';

export async function runFirstEdit() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'apply-edit-python-'));
  execFileSync(PYTHON, ['-m', 'venv', folder]);
  const env = { PATH: `${path.join(folder, 'bin')}:${process.env.PATH}`, PYTHONPATH: '' };
  const vsix = path.resolve('apply-edit.vsix');
  const workbench = await openWorkbench({ files: { 'cart.py': files['snippet.py'] }, vsix, env });
  const { page } = workbench;
  page.setDefaultTimeout(PATIENCE_MS);
  fs.mkdirSync('artefacts', { recursive: true });
  try {
    await page.goto(`${workbench.address}/?folder=${workbench.workspace}`);
    await page.waitForSelector('.monaco-workbench .statusbar-item');
    await firstEdit(page, actions(workbench));
    console.log('the first edit is applied: ok');
    return true;
  } catch (error) {
    console.log(`the first edit is applied: not ok: ${error.stack}`);
    await page.screenshot({ path: 'artefacts/first-failed.png' });
    return false;
  } finally {
    await workbench.stop();
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function firstEdit(page, { command, lens, open, saved, status, tab, toast }) {
  const picture = (name) => page.screenshot({ path: `artefacts/first-${name}.png` });
  await open('cart.py');
  await page.evaluate((text) => navigator.clipboard.writeText(text), snippet);
  await command('Apply Edit from Clipboard');
  const missing = toast("The Python package apply-server isn't installed");
  await missing.waitFor();
  await picture('missing');
  await missing.locator('.monaco-button', { hasText: 'Install in a Terminal' }).click();
  await page.locator('.terminal-wrapper').first().waitFor();
  await picture('installing');
  await lens('Accept All').waitFor();
  await picture('review');
  await page.keyboard.press('Control+Shift+Enter');
  await tab('cart.py').waitFor();
  await status(/Applied cart\.py \+3 −0/).waitFor();
  await picture('applied');
  await saved('cart.py', answers['snippet.py']);
  assert.equal(await page.locator('.notification-list-item').count(), 0);
}
