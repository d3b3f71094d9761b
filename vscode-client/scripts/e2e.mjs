// The tests in a real VS Code: in its extension host, then through its page. `e2e.mjs host` or
// `e2e.mjs page` runs one of them. Needs code-server (test/e2e/install-code-server.sh) and Chromium.
import { build } from 'esbuild';

const chosen = process.argv[2];
const checks = { host: runHost, page: runPage };
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
