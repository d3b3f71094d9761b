import js from '@eslint/js';
import ts from 'typescript-eslint';

export default ts.config(
  { ignores: ['dist/**', 'out/**', 'artefacts/**'] },
  js.configs.recommended,
  {
    files: ['src/**/*.ts', 'test/**/*.ts'],
    extends: [ts.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      'max-lines': ['error', { max: 300, skipBlankLines: true }],
    },
  },
  {
    files: ['**/*.mjs', '**/*.cjs'],
    languageOptions: {
      globals: Object.fromEntries(
        [
          ...[
            'console',
            'exports',
            'fetch',
            'process',
            'setTimeout',
            'clearTimeout',
            'setInterval',
            'clearInterval',
          ],
          ...['Element', 'document', 'getComputedStyle', 'navigator', 'URLSearchParams'],
        ].map((name) => [name, 'readonly']),
      ),
    },
  },
);
