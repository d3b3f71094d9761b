// A real VS Code workbench (code-server) in headless Chromium, with a folder of its own that goes
// when it stops.
import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';

/** No test is about speed: only what never comes takes longer. */
export const PATIENCE_MS = 120_000;

const CACHE = process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache');
const CODE_SERVER = process.env.CODE_SERVER ?? path.join(CACHE, 'apply-server-ci', 'code-server');
const ENTRY = path.join(CODE_SERVER, 'node_modules/code-server/out/node/entry.js');
const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';
const PYTHON = process.env.PYTHON ?? 'python3';
const ROOT = path.resolve(import.meta.dirname, '../../..');

const SETTINGS = {
  'security.workspace.trust.startupPrompt': 'never',
  'security.workspace.trust.banner': 'never',
  'editor.cursorBlinking': 'solid',
  'workbench.startupEditor': 'none',
  'workbench.tips.enabled': false,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'telemetry.telemetryLevel': 'off',
  'update.mode': 'none',
  'extensions.autoUpdate': false,
  'extensions.autoCheckUpdates': false,
  'extensions.ignoreRecommendations': true,
  'chat.disableAIFeatures': true,
  'chat.commandCenter.enabled': false,
  'git.enabled': false,
  'editor.minimap.enabled': false,
  'files.autoSave': 'off',
};

/**
 * Files `{name: text}` are the workspace's; `answers` `{name: text}` is what the target writes, and
 * without them there is no Python to begin with. With `trust`, the workspace isn't trusted at first.
 */
export async function openWorkbench({
  files,
  answers,
  settings = {},
  vsix,
  passDelayMs = 0,
  trust = false,
  env = {},
}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'apply-edit-'));
  const workspace = path.join(folder, 'workspace');
  const user = path.join(folder, 'user');
  const extensions = path.join(folder, 'extensions');
  for (const made of [
    workspace,
    extensions,
    ...['User', 'Machine'].map((at) => path.join(user, at)),
  ]) {
    fs.mkdirSync(made, { recursive: true });
  }
  for (const [name, text] of Object.entries(files)) {
    fs.writeFileSync(path.join(workspace, name), text);
  }
  const python = answers && scriptedPython(folder, answers, passDelayMs);
  const all = { ...SETTINGS, 'security.workspace.trust.enabled': trust, ...settings };
  fs.writeFileSync(path.join(user, 'User', 'settings.json'), JSON.stringify(all));
  const machine = python === undefined ? {} : { 'applyEdit.pythonPath': python };
  fs.writeFileSync(path.join(user, 'Machine', 'settings.json'), JSON.stringify(machine));
  fs.writeFileSync(path.join(folder, 'config.yaml'), 'auth: none\n');
  const dirs = ['--config', path.join(folder, 'config.yaml'), '--user-data-dir', user];
  dirs.push('--extensions-dir', extensions);
  if (vsix !== undefined) {
    execFileSync(process.execPath, [ENTRY, ...dirs, '--install-extension', vsix], environment(env));
  }
  const port = await freePort();
  dirs.push('--bind-addr', `127.0.0.1:${port}`, ...(trust ? [] : ['--disable-workspace-trust']));
  const address = `http://127.0.0.1:${port}`;
  const server = await started(`${address}/healthz`, () =>
    serve([...dirs, workspace], folder, environment(env)),
  );
  let browser;
  try {
    browser = await launch();
  } catch (error) {
    await stop();
    throw error;
  }
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: address });
  return { folder, workspace, address, port, page: await context.newPage(), python, stop };

  async function stop() {
    await browser?.close();
    await ended(server);
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/**
 * A Python whose `serve` answers from a file: the product needs no door for tests. It fetches no model.
 * Beside it is `bare`, which has no server until it is told to install one.
 */
function scriptedPython(folder, answers, passDelayMs) {
  const script = path.join(folder, 'python');
  const file = path.join(folder, 'answers.json');
  fs.writeFileSync(file, JSON.stringify(answers));
  fs.writeFileSync(path.join(folder, 'pass-delay-ms'), String(passDelayMs));
  const scripted = `--target scripted --answers '${file}' --pass-delay-ms "$(cat '${folder}/pass-delay-ms')"`;
  fs.writeFileSync(
    script,
    `#!/bin/sh
echo "$$ $*" >> '${folder}/started'
case "$*" in
  *" serve "*) exec ${PYTHON} "$@" ${scripted} ;;
  *" models pull "*) exit 0 ;;
  *) exec ${PYTHON} "$@" ;;
esac
`,
    { mode: 0o755 },
  );
  fs.writeFileSync(
    path.join(folder, 'bare'),
    `#!/bin/sh
case "$1" in
  */install.py) exec touch '${folder}/installed' ;;
esac
[ -e '${folder}/installed' ] && exec '${script}' "$@"
exec ${PYTHON} -I -S "$@"
`,
    { mode: 0o755 },
  );
  return script;
}

function environment(more) {
  const gallery = JSON.stringify({ serviceUrl: '' });
  const env = { ...process.env, PYTHONPATH: ROOT, EXTENSIONS_GALLERY: gallery, ...more };
  return { env, stdio: ['ignore', 'ignore', 'inherit'] };
}

function serve(options, folder, surroundings) {
  const log = fs.openSync(path.join(folder, 'code-server.log'), 'w');
  const quiet = ['--disable-telemetry', '--disable-update-check'];
  quiet.push('--disable-getting-started-override');
  return spawn(process.execPath, [ENTRY, ...quiet, ...options], {
    ...surroundings,
    stdio: ['ignore', log, log],
    detached: true,
  });
}

function launch() {
  const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'];
  flags.push('--disable-background-networking', '--disable-component-update');
  flags.push('--disable-sync', '--disable-dev-shm-usage');
  return chromium.launch({
    executablePath: CHROMIUM,
    headless: true,
    args: flags,
    timeout: PATIENCE_MS,
  });
}

function freePort() {
  return new Promise((resolve) => {
    const probe = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/** The server, once it answers. It gives itself ten seconds to come up, too few on a busy machine. */
async function started(url, start) {
  let server = start();
  for (const last = Date.now() + PATIENCE_MS; Date.now() < last; ) {
    if (await isAnswered(url)) {
      return server;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
    if (server.exitCode !== null) {
      server = start();
    }
  }
  await ended(server);
  throw new Error(`nothing answers at ${url}`);
}

async function isAnswered(url) {
  try {
    return (await fetch(url)).ok;
  } catch {
    return false; // not up yet
  }
}

/** The whole process group, and only that. */
async function ended(server) {
  if (server.exitCode !== null) {
    return;
  }
  const exit = new Promise((resolve) => server.once('exit', resolve));
  process.kill(-server.pid, 'SIGTERM');
  const forced = setTimeout(() => process.kill(-server.pid, 'SIGKILL'), 10_000);
  await exit;
  clearTimeout(forced);
}
