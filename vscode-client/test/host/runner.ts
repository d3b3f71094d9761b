/** A few lines of test runner for the extension host: named tests in turn, results in a file. */

import * as fs from 'node:fs';

const TEST_TIMEOUT_MS = 180_000;
const tests: [string, () => Promise<void>][] = [];

export function test(name: string, body: () => Promise<void>): void {
  tests.push([name, body]);
}

/** Run all, or those whose names match `ONLY`, each after `before`; rejects if one failed. */
export async function runAll(before: () => Promise<void>, results: string): Promise<void> {
  let failed = 0;
  const only = new RegExp(process.env.ONLY ?? '');
  const chosen = tests.filter(([name]) => only.test(name));
  for (const [name, body] of chosen) {
    const started = Date.now();
    let line = 'ok';
    try {
      await Promise.race([before().then(body), overdue()]);
    } catch (error) {
      failed += 1;
      line = `not ok: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
    }
    fs.appendFileSync(results, `${name} (${Date.now() - started} ms): ${line}\n`);
  }
  fs.appendFileSync(results, `${chosen.length - failed} passed, ${failed} failed\n`);
  if (failed > 0) {
    throw new Error(`${failed} failed`);
  }
}

function overdue(): Promise<never> {
  return new Promise((_, reject) => {
    setTimeout(() => {
      reject(new Error('it takes too long'));
    }, TEST_TIMEOUT_MS);
  });
}
