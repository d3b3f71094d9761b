/** Short ways to write text edits and results. */

import type { ApplyResult, Delta, Report, TextEdit, Verified } from '../../src/protocol';

/** Replace [startLine:startCharacter, endLine:endCharacter). */
export function edit(from: [number, number], to: [number, number], newText: string): TextEdit {
  return {
    range: {
      start: { line: from[0], character: from[1] },
      end: { line: to[0], character: to[1] },
    },
    newText,
  };
}

export const report: Report = {
  promptTokens: 10,
  cachedTokens: 0,
  outputTokens: 20,
  targetPasses: 2,
  tokensPerPass: 10,
  draftedTokens: 18,
  acceptedTokens: 18,
  acceptanceRate: 1,
  prefillS: 0.1,
  decodeS: 0.2,
  tokensPerS: 100,
  durationMs: 450,
  added: 1,
  removed: 1,
  copiedShare: 0.9,
  verified: true,
  warnings: [],
};

export function result(...edits: TextEdit[]): ApplyResult {
  return { status: 'changed', edits, version: 1, report };
}

export function delta(fromLine: number, toLine: number, ...edits: TextEdit[]): Delta {
  return { kind: 'delta', fromLine, toLine, edits };
}

export function verified(originalLine: number, share = 0.5): Verified {
  const resultLine = originalLine;
  return {
    kind: 'verified',
    originalLine,
    resultLine,
    passes: 1,
    tokensPerS: 10,
    copiedShare: 1,
    share,
  };
}

/** The text after edits, as an editor would make it; the reference for the tests. */
export function applied(text: string, edits: readonly TextEdit[]): string {
  const starts = [0];
  for (const match of text.matchAll(/\r\n|\r|\n/g)) {
    starts.push(match.index + match[0].length);
  }
  const offset = ({ line, character }: { line: number; character: number }): number =>
    (starts[line] ?? text.length) + character;
  return [...edits]
    .reverse()
    .reduce(
      (done, { range, newText }) =>
        done.slice(0, offset(range.start)) + newText + done.slice(offset(range.end)),
      text,
    );
}
