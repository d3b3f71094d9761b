// The packaged extension through the workbench's page: palette, keys, buttons, notifications. What is
// asserted is on disk, after saving.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { answers, files, snippet } from './cases.cjs';
import { openWorkbench } from './workbench.mjs';

const ROWS = '.quick-input-list .monaco-list-row';
const INPUT = '.quick-input-widget input.input';

export async function runPageTests() {
  fs.mkdirSync('artefacts', { recursive: true });
  const vsix = path.resolve('apply-edit.vsix');
  const workbench = await openWorkbench({ files, answers, vsix, passDelayMs: 150 });
  const { page } = workbench;
  page.setDefaultTimeout(30_000);
  let failed = 0;
  try {
    await page.goto(`${workbench.address}/?folder=${workbench.workspace}`);
    await page.waitForSelector('.monaco-workbench .statusbar-item');
    const all = Object.entries(tests(page, workbench));
    for (const [name, test] of all.filter(([name]) => name.includes(process.env.ONLY ?? ''))) {
      const started = Date.now();
      let verdict = 'ok';
      try {
        await test();
      } catch (error) {
        failed += 1;
        const focus = await page.evaluate(() => document.activeElement?.className);
        verdict = `not ok, focus on ${focus}: ${error.stack}`;
        await page.screenshot({ path: `artefacts/failed-${name.replaceAll(/\W+/g, '-')}.png` });
      }
      console.log(`${name} (${Date.now() - started} ms): ${verdict}`);
    }
  } finally {
    await workbench.stop();
  }
  console.log(`${failed} failed`);
  return failed === 0;
}

function tests(page, workbench) {
  const read = (name) => fs.readFileSync(path.join(workbench.workspace, name), 'utf8');
  const picture = (name) => page.screenshot({ path: `artefacts/${name}.png` });
  const lens = (text) => page.locator('.codelens-decoration > *', { hasText: text });
  const toast = (text) =>
    page.locator('.notifications-toasts .notification-list-item', { hasText: text }).first();

  async function command(title) {
    await page.keyboard.press('F1');
    await page.locator(INPUT).waitFor();
    await page.locator(INPUT).fill(`>${title}`);
    await page.locator(ROWS, { hasText: title }).first().waitFor();
    await page.keyboard.press('Enter');
  }

  async function open(name) {
    await page.keyboard.press('Control+P');
    await page.locator(INPUT).fill(name);
    await page.locator(ROWS, { hasText: name }).first().waitFor();
    await page.keyboard.press('Enter');
    await page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor();
    await page.locator('.editor-instance .view-lines').first().click();
  }

  async function instruct(text) {
    await command('Apply Edit: Apply Edit…');
    await page.locator('.quick-input-title', { hasText: 'Apply Edit:' }).waitFor();
    if (text !== undefined) {
      await page.locator(INPUT).fill(text);
      await page.locator(ROWS, { hasText: 'Enter to apply' }).waitFor();
    }
    await page.keyboard.press('Enter');
  }

  async function saved(name, wanted) {
    await page.keyboard.press('Control+S');
    await page.locator('.tab.active.dirty').waitFor({ state: 'detached' });
    await condition(
      () => read(name) === wanted,
      () => `${name} is:\n${read(name)}`,
    );
  }

  const tab = (name) => page.locator(`.tab.active[data-resource-name="${name}"]`);
  const closeAll = () => command('View: Close All Editors');

  return {
    async 'an instruction from the palette, accepted with the key, undone once'() {
      await open('cart.py');
      await instruct('Give items a discount.');
      await lens('Accept All').waitFor();
      const editor = page.locator('.editor-group-container');
      await editor.screenshot({ path: 'artefacts/preview.png' });
      await page.keyboard.press('Control+Shift+Enter');
      await tab('cart.py').waitFor();
      await page
        .locator('.statusbar-item', { hasText: /Applied cart\.py \+3 −2 · .* copied/ })
        .waitFor();
      await picture('applied');
      await saved('cart.py', answers['cart.py']);
      await page.keyboard.press('Control+Z');
      await saved('cart.py', files['cart.py']);
    },

    async 'the last instruction comes first; a change is rejected by its button'() {
      await command('Apply Edit: Apply Edit…');
      await page.locator(ROWS, { hasText: 'Give items a discount.' }).waitFor();
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
      await lens('Applying').waitFor();
      await condition(async () => /\d+%/.test(await notification.innerText()));
      await picture('running');
      await notification.locator('.monaco-button', { hasText: 'Cancel' }).click();
      await tab('slow.py').waitFor();
      await page
        .locator('.statusbar-item', { hasText: 'Cancelled. Nothing was changed.' })
        .waitFor();
      assert.equal(read('slow.py'), files['slow.py']);
    },

    async 'Escape cancels'() {
      await instruct('Rename all again.');
      await lens('Applying').waitFor();
      await page.keyboard.press('Escape');
      await tab('slow.py').waitFor();
      await page
        .locator('.statusbar-item', { hasText: 'Cancelled. Nothing was changed.' })
        .waitFor();
      await closeAll();
    },

    async 'typing in the file ends the edit; Retry makes it again'() {
      await open('typed.py');
      await instruct('Rename all.');
      await lens('Applying').waitFor();
      await page.locator('.tab[data-resource-name="typed.py"]').click();
      await page.locator('.editor-instance .view-lines').first().click();
      await page.keyboard.press('Control+Home');
      await page.keyboard.type('#');
      const warning = toast('The file changed since it was read.');
      await warning.waitFor();
      await picture('file-changed');
      assert.equal(await warning.locator('.monaco-button', { hasText: 'Show Log' }).count(), 1);
      await warning.locator('.monaco-button', { hasText: 'Retry' }).click();
      await lens('Applying').waitFor();
      await page.keyboard.press('Escape');
      await tab('typed.py').waitFor();
      await saved('typed.py', `#${files['typed.py']}`);
      await closeAll();
    },
  };
}

async function condition(holds, explain = () => String(holds)) {
  for (let tries = 0; tries < 600; tries += 1) {
    if (await holds()) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`it never came true: ${explain()}`);
}
