// Run test/host inside VS Code's real extension host, as @vscode/test-electron would, without Electron.
import fs from 'node:fs';
import path from 'node:path';
import { answers, files } from './cases.cjs';
import { openWorkbench } from './workbench.mjs';

const TIMEOUT_MS = 240_000;
const CLIENT = path.resolve(import.meta.dirname, '../..');

export async function runHostTests() {
  const workbench = await openWorkbench({ files, answers, passDelayMs: 20 });
  const { page, address, port } = workbench;
  const camera = setInterval(() => {
    void takePictures(page, workbench.workspace);
  }, 200);
  try {
    const ended = new Promise((resolve) => page.exposeFunction('codeAutomationExit', resolve));
    await page.exposeFunction('codeAutomationLog', () => undefined);
    await page.addInitScript(enableTestDriver);
    const remote = (name) => `vscode-remote://127.0.0.1:${port}${path.join(CLIENT, name)}`;
    const payload = JSON.stringify([
      ['extensionDevelopmentPath', remote('')],
      ['extensionTestsPath', remote('out/host/index.js')],
    ]);
    const query = new URLSearchParams({ folder: workbench.workspace, payload });
    await page.goto(`${address}/?${query}`);
    const code = await Promise.race([
      ended,
      new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS, 'timed out')),
    ]);
    if (code !== 0) {
      fs.mkdirSync('artefacts', { recursive: true });
      await page.screenshot({ path: 'artefacts/host-failed.png' });
    }
    const results = path.join(workbench.workspace, 'results.txt');
    console.log(fs.existsSync(results) ? fs.readFileSync(results, 'utf8') : 'no results');
    keepLogs(workbench.folder);
    return code === 0;
  } finally {
    clearInterval(camera);
    await workbench.stop();
  }
}

/** A test asks for a picture with a file NAME.picture, and waits until the file is gone. */
async function takePictures(page, workspace) {
  for (const file of fs.readdirSync(workspace).filter((name) => name.endsWith('.picture'))) {
    const name = path.basename(file, '.picture');
    fs.mkdirSync('artefacts', { recursive: true });
    await page.locator(`.monaco-workbench.${name}`).waitFor();
    await page.screenshot({ path: `artefacts/${name}.png` });
    fs.rmSync(path.join(workspace, file), { force: true });
  }
}

function keepLogs(folder) {
  fs.mkdirSync('artefacts', { recursive: true });
  const logs = fs
    .readdirSync(folder, { recursive: true })
    .filter((name) => /Apply Edit\.log$|code-server\.log$|remoteexthost\.log$/.test(name));
  for (const name of logs) {
    fs.copyFileSync(path.join(folder, name), path.join('artefacts', path.basename(name)));
  }
}

/** Newer workbenches honour the payload only with this option. */
function enableTestDriver() {
  const get = Element.prototype.getAttribute;
  Element.prototype.getAttribute = function (name) {
    const value = get.call(this, name);
    if (name !== 'data-settings' || this.id !== 'vscode-workbench-web-configuration') {
      return value;
    }
    const options = JSON.parse(value);
    options.developmentOptions = { ...options.developmentOptions, enableSmokeTestDriver: true };
    return JSON.stringify(options);
  };
}
