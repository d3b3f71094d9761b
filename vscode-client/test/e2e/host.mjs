// Run test/host inside VS Code's real extension host, as @vscode/test-electron would, without Electron.
import fs from 'node:fs';
import path from 'node:path';
import { answers, files } from './cases.cjs';
import { serveRequests } from './requests.mjs';
import { openWorkbench } from './workbench.mjs';

const TIMEOUT_MS = 900_000;
const CLIENT = path.resolve(import.meta.dirname, '../..');

export async function runHostTests() {
  const workbench = await openWorkbench({ files, answers, passDelayMs: 20 });
  const { page, address, port } = workbench;
  const roots = twoRoots(workbench.folder);
  const requests = serveRequests(page, workbench.folder);
  try {
    const ended = new Promise((resolve) => page.exposeFunction('codeAutomationExit', resolve));
    await page.exposeFunction('codeAutomationLog', () => undefined);
    await page.addInitScript(enableTestDriver);
    const remote = (name) => `vscode-remote://127.0.0.1:${port}${path.join(CLIENT, name)}`;
    const payload = JSON.stringify([
      ['extensionDevelopmentPath', remote('')],
      ['extensionTestsPath', remote('out/host/index.js')],
    ]);
    const query = new URLSearchParams({ workspace: roots, payload });
    await page.goto(`${address}/?${query}`);
    const overdue = new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS, 'timed out').unref());
    const code = await Promise.race([ended, overdue]);
    if (code !== 0) {
      fs.mkdirSync('artefacts', { recursive: true });
      await page.screenshot({ path: 'artefacts/host-failed.png' });
    }
    const results = path.join(workbench.folder, 'results.txt');
    console.log(fs.existsSync(results) ? fs.readFileSync(results, 'utf8') : 'no results');
    keepLogs(workbench.folder);
    return code === 0;
  } finally {
    await requests.stop();
    await workbench.stop();
  }
}

/** A workspace of two folders; in the second one, edits are applied without a preview. */
function twoRoots(folder) {
  const settings = path.join(folder, 'second', '.vscode', 'settings.json');
  fs.mkdirSync(path.dirname(settings), { recursive: true });
  fs.writeFileSync(
    settings,
    JSON.stringify({ 'applyEdit.preview': 'never', 'applyEdit.verify': 'never' }),
  );
  fs.writeFileSync(path.join(folder, 'second', 'plain.py'), files['plain.py']);
  const roots = path.join(folder, 'two.code-workspace');
  const folders = ['workspace', 'second'].map((name) => ({ path: name }));
  fs.writeFileSync(roots, JSON.stringify({ folders }));
  return roots;
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
