// What tests in the extension host ask of the page, which they can't reach: a file NAME.request with
// JSON in it is a request, and goes when it is served.
import fs from 'node:fs';
import path from 'node:path';

const LOOK_MS = 50;
const PATIENCE_MS = 150_000;

const KINDS = { picture: takePicture, button: pressButton };

/** Serve requests in `folder` until stopped; one that fails is told about and stays. */
export function serveRequests(page, folder) {
  let stopped = false;
  const ended = serve();
  return {
    stop: () => {
      stopped = true;
      return ended;
    },
  };

  async function serve() {
    while (!stopped) {
      for (const name of fs.readdirSync(folder).filter((entry) => entry.endsWith('.request'))) {
        await served(page, path.join(folder, name));
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }
}

async function served(page, file) {
  const request = JSON.parse(fs.readFileSync(file, 'utf8'));
  try {
    await KINDS[request.kind](page, request);
    fs.rmSync(file);
  } catch (error) {
    console.error(`${file}: ${error.message}`);
    fs.renameSync(file, `${file}-failed`);
  }
}

/** Press a button of the notification that has `text`. */
async function pressButton(page, { text, button }) {
  await page
    .locator('.notifications-toasts .notification-list-item', { hasText: text })
    .first()
    .locator('.monaco-button', { hasText: button })
    .click({ timeout: PATIENCE_MS });
}

/** A picture of a preview in the theme of kind `name`, once that is painted and stands still. */
async function takePicture(page, { name, colors }) {
  await page.waitForFunction(isPainted, { name, colors }, { timeout: PATIENCE_MS });
  fs.mkdirSync('artefacts', { recursive: true });
  const file = path.join('artefacts', `${name}.png`);
  let before = await page.screenshot();
  for (const until = Date.now() + PATIENCE_MS; Date.now() < until; ) {
    const now = await page.screenshot({ path: file });
    if (now.equals(before)) {
      return;
    }
    before = now;
  }
  throw new Error(`${name} never stands still`);
}

/** In the page: the workbench, and the bars beside a preview's lines, have the theme's colours. */
function isPainted({ name, colors }) {
  if (document.querySelector(`.monaco-workbench.${name}`) === null) {
    return false;
  }
  const overlays = [...document.querySelectorAll('.view-overlays .cdr')];
  const shown = new Set(overlays.map((it) => getComputedStyle(it).borderLeftColor));
  return colors.every((color) => shown.has(color));
}
