// What a person does in the workbench, for tests through its page.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { PATIENCE_MS } from './workbench.mjs';

const ROWS = '.quick-input-list .monaco-list-row';
const CHOSEN = '.quick-input-list .monaco-list-row.focused'; // what Enter takes
const INPUT = '.quick-input-widget input.input';
const ONE_TRY_MS = 15_000;

export function actions({ page, workspace }) {
  const read = (name) => fs.readFileSync(path.join(workspace, name), 'utf8');

  const tab = (name) => page.locator(`.tab.active[data-resource-name="${name}"]`);

  async function command(title) {
    await page.keyboard.press('F1');
    await page.locator(INPUT).waitFor();
    await page.locator(INPUT).fill(`>${title}`);
    const row = page.locator(CHOSEN, { hasText: title });
    await row.waitFor();
    await insist(() => page.keyboard.press('Enter'), row, 'hidden');
  }

  async function open(name) {
    await insist(async () => {
      await page.keyboard.press('Control+P');
      await page.locator(INPUT).fill(name);
      await page.locator(CHOSEN, { hasText: name }).waitFor();
      await page.keyboard.press('Enter');
    }, tab(name));
    await page.locator('.editor-instance .view-lines').first().click();
  }

  const closeAll = () =>
    insist(() => command('View: Close All Editors'), page.locator('.tab').first(), 'detached');

  async function instruct(text) {
    const title = page.locator('.quick-input-title', { hasText: 'Apply Edit:' });
    await insist(() => command('Apply Edit: Apply Edit…'), title);
    await page.locator(INPUT).fill(text);
    await page.locator(ROWS, { hasText: 'Enter to apply' }).waitFor();
    await page.keyboard.press('Enter');
  }

  async function saved(name, wanted) {
    await tab(name).waitFor();
    await condition(
      async () => {
        await page.keyboard.press('Control+S'); // again, where the text was still to come
        return read(name) === wanted;
      },
      () => `${name} is:\n${read(name)}`,
    );
    await page.locator('.tab.active.dirty').waitFor({ state: 'detached' });
  }

  return {
    command,
    open,
    instruct,
    read,
    saved,
    closeAll,
    rows: (text) => page.locator(ROWS, { hasText: text }),
    tab,
    lens: (text) => page.locator('.codelens-decoration > *', { hasText: text }),
    toast: (text) =>
      page.locator('.notifications-toasts .notification-list-item', { hasText: text }).first(),
    status: (text) => page.locator('.statusbar-item', { hasText: text }),
  };
}

/** Again until it works: the workbench drops a key that comes while it fills or closes a list. */
async function insist(action, wanted, state = 'visible') {
  for (const last = Date.now() + PATIENCE_MS; ; ) {
    await action();
    const timeout = Math.min(ONE_TRY_MS, Math.max(last - Date.now(), 1));
    const done = await wanted.waitFor({ state, timeout }).then(
      () => true,
      () => false,
    );
    if (done) {
      return;
    }
    assert.ok(Date.now() < last, `${wanted} never became ${state}`);
  }
}

export async function condition(holds, explain = () => String(holds)) {
  for (const last = Date.now() + PATIENCE_MS; Date.now() < last; ) {
    if (await holds()) {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`it never came true: ${explain()}`);
}
