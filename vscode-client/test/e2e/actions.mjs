// What a person does in the workbench, for tests through its page.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { PATIENCE_MS } from './workbench.mjs';

const ROWS = '.quick-input-list .monaco-list-row';
const INPUT = '.quick-input-widget input.input';

export function actions({ page, workspace }) {
  const read = (name) => fs.readFileSync(path.join(workspace, name), 'utf8');

  const tab = (name) => page.locator(`.tab.active[data-resource-name="${name}"]`);

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
    await tab(name).waitFor();
    await page.locator('.editor-instance .view-lines').first().click();
  }

  async function instruct(text) {
    await command('Apply Edit: Apply Edit…');
    await page.locator('.quick-input-title', { hasText: 'Apply Edit:' }).waitFor();
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
    closeAll: () => command('View: Close All Editors'),
    rows: (text) => page.locator(ROWS, { hasText: text }),
    tab,
    lens: (text) => page.locator('.codelens-decoration > *', { hasText: text }),
    toast: (text) =>
      page.locator('.notifications-toasts .notification-list-item', { hasText: text }).first(),
    status: (text) => page.locator('.statusbar-item', { hasText: text }),
  };
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
