/**
 * Text edits as hunks of whole lines, which is what a person reviews. Must not know `vscode`, nor
 * where edits come from.
 */

import type { TextEdit } from './protocol';

/** Lines [start, end) of the original become `lines`; `edits` do that. */
export interface Hunk {
  readonly start: number;
  readonly end: number;
  readonly lines: readonly string[];
  readonly edits: readonly TextEdit[];
}

/** As VS Code counts lines: a final line ending is followed by one more, empty line. */
export function splitLines(text: string): string[] {
  return text.split(/\r\n|\r|\n/);
}

/** Hunks of `edits` (ascending, disjoint); changes of lines that follow each other are one hunk. */
export function hunksOf(original: readonly string[], edits: readonly TextEdit[]): Hunk[] {
  const groups: TextEdit[][] = [];
  for (const edit of edits) {
    const previous = groups.at(-1);
    if (previous !== undefined && edit.range.start.line <= lastLine(previous)) {
      previous.push(edit);
    } else {
      groups.push([edit]);
    }
  }
  return joined(groups.map((group) => hunkOf(original, group)));
}

function lastLine(edits: readonly TextEdit[]): number {
  return edits.at(-1)?.range.end.line ?? -1;
}

/** Hunks that touch are shown, and decided, as one. */
function joined(hunks: readonly Hunk[]): Hunk[] {
  const result: Hunk[] = [];
  for (const hunk of hunks) {
    const previous = result.at(-1);
    if (previous !== undefined && hunk.start <= previous.end) {
      result[result.length - 1] = {
        start: previous.start,
        end: hunk.end,
        lines: [...previous.lines, ...hunk.lines],
        edits: [...previous.edits, ...hunk.edits],
      };
    } else {
      result.push(hunk);
    }
  }
  return result;
}

function hunkOf(original: readonly string[], edits: readonly TextEdit[]): Hunk {
  const first = edits[0];
  const last = edits[edits.length - 1];
  if (first === undefined || last === undefined) {
    throw new RangeError('a hunk has edits');
  }
  const start = first.range.start.line;
  const end = Math.min(last.range.end.line + 1, original.length);
  return { ...trimmed(original, start, end, rewritten(original, edits, start, end)), edits };
}

/** The lines [start, end) of the original after `edits`, which lie within them. */
function rewritten(
  original: readonly string[],
  edits: readonly TextEdit[],
  start: number,
  end: number,
): string[] {
  let text = '';
  let line = start;
  let character = 0;
  const copyTo = (toLine: number, toCharacter: number): void => {
    while (line < toLine) {
      text += `${(original[line] ?? '').slice(character)}\n`;
      line += 1;
      character = 0;
    }
    text += (original[line] ?? '').slice(character, toCharacter);
    character = toCharacter;
  };
  for (const { range, newText } of edits) {
    copyTo(range.start.line, range.start.character);
    text += newText;
    line = range.end.line;
    character = range.end.character;
  }
  if (line < end) {
    copyTo(end - 1, Number.MAX_SAFE_INTEGER);
  }
  return splitLines(text);
}

/** Without the lines at either end that stay as they are. */
function trimmed(
  original: readonly string[],
  start: number,
  end: number,
  lines: readonly string[],
): Omit<Hunk, 'edits'> {
  const most = Math.min(end - start, lines.length);
  let tail = 0;
  while (tail < most && original[end - 1 - tail] === lines[lines.length - 1 - tail]) {
    tail += 1;
  }
  let head = 0;
  while (head < most - tail && original[start + head] === lines[head]) {
    head += 1;
  }
  return {
    start: start + head,
    end: end - tail,
    lines: lines.slice(head, lines.length - tail),
  };
}
