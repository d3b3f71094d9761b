/**
 * One edit of one document, from its first partial result to the text edits a person accepted.
 *
 * The document itself is not touched meanwhile: what is shown is a view of `rows`, and what is
 * applied in the end is `accepted()`, at once. Must not know `vscode`, nor how rows are shown.
 */

import { hunksOf, splitLines, type Hunk } from './hunks';
import type { ApplyResult, Delta, PartialResult, Report, TextEdit, Verified } from './protocol';

export type Phase = 'running' | 'reviewing' | 'decided';
export type Decision = 'undecided' | 'accepted' | 'rejected';

/** `replaced` stands for a removed line that has a successor, `changed` is that successor. */
export type RowKind = 'same' | 'removed' | 'replaced' | 'added' | 'changed' | 'accepted';

/** One line of the view. `originalLine` is where it stands, or would be inserted, in the original. */
export interface Row {
  readonly kind: RowKind;
  readonly text: string;
  readonly originalLine: number;
  readonly hunk: number | undefined;
  readonly verified: boolean;
  /** The columns [from, to) in which a replaced or changed line differs from its partner. */
  readonly differs: readonly [number, number] | undefined;
}

export interface Progress {
  readonly share: number;
  readonly tokensPerS: number;
  readonly copiedShare: number;
}

export class EditSession {
  readonly original: readonly string[];
  private hunks: readonly Hunk[] = [];
  private decisions: Decision[] = [];
  private verifiedUpTo = 0;
  private finished: Report | undefined;
  progress: Progress = { share: 0, tokensPerS: 0, copiedShare: 0 };

  /** `version` is the document's when `text` was read. */
  constructor(
    text: string,
    readonly version: number,
  ) {
    this.original = splitLines(text);
  }

  get phase(): Phase {
    if (this.finished === undefined) {
      return 'running';
    }
    return this.decisions.includes('undecided') ? 'reviewing' : 'decided';
  }

  get report(): Report | undefined {
    return this.finished;
  }

  /** Whether the document at `version` is no longer the text that this session is about. */
  isStale(version: number): boolean {
    return version !== this.version;
  }

  /** Take one partial result; says whether other lines are to be shown now. */
  receive(part: PartialResult): boolean {
    if (this.finished !== undefined) {
      return false; // late: the result has said it all
    }
    switch (part.kind) {
      case 'preview':
        this.show(hunksOf(this.original, part.edits));
        return true;
      case 'delta':
        this.show(this.replaced(part));
        return true;
      case 'verified':
        return this.confirm(part);
    }
  }

  /** The final edits; they replace whatever was shown. */
  finish(result: ApplyResult): void {
    this.finished = result.report;
    this.verifiedUpTo = this.original.length;
    this.show(hunksOf(this.original, result.edits));
  }

  private show(hunks: readonly Hunk[]): void {
    this.hunks = hunks;
    this.decisions = hunks.map(() => 'undecided');
  }

  private confirm(part: Verified): boolean {
    this.progress = part;
    if (part.originalLine <= this.verifiedUpTo) {
      return false; // reports may overtake each other; what is confirmed stays so
    }
    this.verifiedUpTo = part.originalLine;
    return true;
  }

  private replaced(delta: Delta): Hunk[] {
    const decided = hunksOf(this.original, delta.edits);
    const atEnd = delta.toLine >= this.original.length;
    const reached = Math.max(delta.toLine, decided.at(-1)?.end ?? 0);
    const insertsAtEnd = decided.at(-1)?.start === reached;
    const before = this.hunks.filter((hunk) => hunk.end <= delta.fromLine && !isAt(hunk, delta));
    const after = this.hunks.filter(
      (hunk) => hunk.start >= reached && !atEnd && !(insertsAtEnd && isInsertion(hunk, reached)),
    );
    return [...before, ...decided, ...after];
  }

  get hunkCount(): number {
    return this.hunks.length;
  }

  decision(hunk: number): Decision {
    return this.decisions[hunk] ?? 'undecided';
  }

  get undecidedCount(): number {
    return this.decisions.filter((decision) => decision === 'undecided').length;
  }

  /** The first undecided hunk from `from` on, else the first of all. */
  nextUndecided(from = 0): number | undefined {
    const after = this.decisions.indexOf('undecided', from);
    const found = after >= 0 ? after : this.decisions.indexOf('undecided');
    return found >= 0 ? found : undefined;
  }

  /** Decide a hunk, or all that are undecided. Only a finished edit can be decided. */
  decide(decision: 'accepted' | 'rejected', hunk?: number): void {
    if (this.finished === undefined) {
      throw new Error('an edit is decided when it is finished');
    }
    this.decisions = this.decisions.map((was, index) =>
      was === 'undecided' && (hunk === undefined || hunk === index) ? decision : was,
    );
  }

  /** The edits of the accepted hunks, ascending: one application, one undo step. */
  accepted(): TextEdit[] {
    return this.acceptedHunks().flatMap((hunk) => hunk.edits);
  }

  /** Lines that the accepted hunks add and remove. */
  counts(): { added: number; removed: number } {
    const hunks = this.acceptedHunks();
    return {
      added: hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0),
      removed: hunks.reduce((sum, hunk) => sum + hunk.end - hunk.start, 0),
    };
  }

  /** Where a line of the original stands after the accepted hunks; a replaced one near its place. */
  lineAfter(originalLine: number): number {
    let shift = 0;
    for (const hunk of this.acceptedHunks()) {
      if (hunk.end > originalLine) {
        const within = originalLine - hunk.start;
        const kept = Math.min(within, Math.max(hunk.lines.length - 1, 0));
        return within < 0 ? originalLine + shift : hunk.start + shift + kept;
      }
      shift += hunk.lines.length - (hunk.end - hunk.start);
    }
    return originalLine + shift;
  }

  /** The whole text as all hunks would have it. */
  result(): string[] {
    return this.rows()
      .filter((row) => row.kind !== 'removed' && row.kind !== 'replaced')
      .map((row) => row.text);
  }

  /** What to show: the original's lines with, at each hunk, the old lines and then the new ones. */
  rows(): Row[] {
    const rows: Row[] = [];
    let at = 0;
    this.hunks.forEach((hunk, index) => {
      this.addSame(rows, at, hunk.start);
      const decision = this.decision(index);
      if (decision === 'rejected') {
        this.addSame(rows, hunk.start, hunk.end);
      } else {
        rows.push(...this.hunkRows(hunk, index, decision === 'accepted'));
      }
      at = hunk.end;
    });
    this.addSame(rows, at, this.original.length);
    return rows;
  }

  private addSame(rows: Row[], start: number, end: number): void {
    for (let line = start; line < end; line += 1) {
      rows.push({
        kind: 'same',
        text: this.original[line] ?? '',
        originalLine: line,
        hunk: undefined,
        verified: line < this.verifiedUpTo,
        differs: undefined,
      });
    }
  }

  private hunkRows(hunk: Hunk, index: number, accepted: boolean): Row[] {
    const old = this.original.slice(hunk.start, hunk.end);
    const pairs = Math.min(old.length, hunk.lines.length);
    const shared = { hunk: index, verified: this.isConfirmed(hunk) };
    const removed = old.map(
      (text, i): Row => ({
        ...shared,
        kind: i < pairs ? 'replaced' : 'removed',
        text,
        originalLine: hunk.start + i,
        differs: i < pairs ? differing(text, hunk.lines[i] ?? '') : undefined,
      }),
    );
    const added = hunk.lines.map(
      (text, i): Row => ({
        ...shared,
        kind: accepted ? 'accepted' : i < pairs ? 'changed' : 'added',
        text,
        originalLine: Math.min(hunk.start + i, hunk.end),
        differs: i < pairs && !accepted ? differing(text, old[i] ?? '') : undefined,
      }),
    );
    return accepted ? added : [...removed, ...added];
  }

  private isConfirmed(hunk: Hunk): boolean {
    return hunk.end < this.verifiedUpTo || this.finished !== undefined;
  }

  private acceptedHunks(): Hunk[] {
    return this.hunks.filter((_, index) => this.decisions[index] === 'accepted');
  }
}

/** An insertion right at the first line of a delta belongs to its lines. */
function isAt(hunk: Hunk, delta: Delta): boolean {
  return isInsertion(hunk, delta.fromLine) && delta.fromLine < delta.toLine;
}

function isInsertion(hunk: Hunk, line: number): boolean {
  return hunk.start === line && hunk.end === line;
}

/** The columns in which `text` differs from `other`, where more than space is common before or after. */
function differing(text: string, other: string): readonly [number, number] | undefined {
  const most = Math.min(text.length, other.length);
  let head = 0;
  while (head < most && text[head] === other[head]) {
    head += 1;
  }
  let tail = 0;
  while (tail < most - head && text[text.length - 1 - tail] === other[other.length - 1 - tail]) {
    tail += 1;
  }
  const to = text.length - tail;
  const common = text.slice(0, head) + text.slice(to);
  return head < to && common.trim() !== '' ? [head, to] : undefined;
}
