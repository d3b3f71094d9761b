// Bundle the extension into dist/extension.js, with the licences of what is in the bundle.
import { build } from 'esbuild';
import fs from 'node:fs';
import path from 'node:path';

const { metafile } = await build({
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  bundle: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  external: ['vscode'],
  minify: true,
  sourcemap: false,
  legalComments: 'none',
  metafile: true,
});

const packages = new Set(
  Object.keys(metafile.inputs).flatMap(
    (file) => file.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0] ?? [],
  ),
);
const notices = [...packages].sort().map((folder) => {
  const { name, version, license } = JSON.parse(
    fs.readFileSync(path.join(folder, 'package.json'), 'utf8'),
  );
  const file = fs.readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined) {
    throw new Error(`${name} comes without its licence`);
  }
  return `${name} ${version} (${license})\n\n${fs.readFileSync(path.join(folder, file), 'utf8')}`;
});
fs.writeFileSync('dist/THIRD_PARTY_LICENSES.txt', notices.join(`\n${'-'.repeat(72)}\n\n`));
