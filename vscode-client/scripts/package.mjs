// Make apply-edit.vsix: the bundle, and the Python package as a wheel for the extension to install.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';

const run = (command, ...args) => execFileSync(command, args, { stdio: 'inherit' });

await import('./build.mjs');
for (const name of fs.readdirSync('python').filter((file) => file.endsWith('.whl'))) {
  fs.rmSync(`python/${name}`);
}
const python = process.env.PYTHON ?? 'python3';
run(python, '-m', 'pip', 'wheel', '--quiet', '--no-deps', '--wheel-dir', 'python', '..');
run(
  'npx',
  'vsce',
  'package',
  '--no-dependencies',
  '--allow-missing-repository',
  '--no-rewrite-relative-links',
  '-o',
  'apply-edit.vsix',
);
