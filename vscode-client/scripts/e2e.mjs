// The tests in a real VS Code: in its extension host, then through its page, then, where FIRST_EDIT is
// set, a first edit from nothing with the default model. `e2e.mjs host`, `page` or `first` runs one.
// Needs code-server (test/e2e/install-code-server.sh) and Chromium.
import { build } from 'esbuild';

const chosen = process.argv[2];
const checks = {
  host: runHost,
  page: runPage,
  ...(process.env.FIRST_EDIT ? { first: runFirst } : {}),
};
for (const [name, run] of Object.entries(checks)) {
  if ((chosen ?? name) === name && !(await run())) {
    process.exit(1);
  }
}

async function runHost() {
  await import('./build.mjs');
  await build({
    entryPoints: ['test/host/index.ts'],
    outfile: 'out/host/index.js',
    bundle: true,
    platform: 'node',
    format: 'cjs',
    external: ['vscode'],
  });
  const { runHostTests } = await import('../test/e2e/host.mjs');
  return runHostTests();
}

async function runPage() {
  await import('./package.mjs');
  const { runPageTests } = await import('../test/e2e/page.mjs');
  return runPageTests();
}

async function runFirst() {
  await import('./package.mjs');
  const { runFirstEdit } = await import('../test/e2e/first.mjs');
  return runFirstEdit();
}
