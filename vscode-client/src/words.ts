/** What the user reads about a job. Must not know `vscode`. */

import type { Progress } from './editSession';

export const NO_CHANGES = 'No changes: the edit is already applied.';
export const FILE_CHANGED = 'The file changed since it was read.';
export const STOPPED = 'The server stopped. Nothing was changed.';
export const GAVE_UP = 'The server stopped 6 times in 3 minutes and is not started again.';

/** `Applied cart.py +15 −3 · 450 ms · 92% copied`; the counts are lines. */
export function applied(
  name: string,
  counts: { added: number; removed: number },
  resultLines: number,
  durationMs: number,
): string {
  const copied = 1 - counts.added / Math.max(1, resultLines);
  return (
    `Applied ${name} +${counts.added} −${counts.removed}` +
    ` · ${duration(durationMs)} · ${percent(copied)} copied`
  );
}

/** `42% · 310 tokens/s · 92% copied`; what isn't known yet is left out. */
export function progress(known: Progress): string {
  const parts = [percent(known.share)];
  if (known.tokensPerS > 0) {
    parts.push(`${Math.round(known.tokensPerS)} tokens/s`, `${percent(known.copiedShare)} copied`);
  }
  return parts.join(' · ');
}

/** `Change 2 of 5 · +3 −1`. */
export function change(index: number, of: number, added: number, removed: number): string {
  return `Change ${index + 1} of ${of} · +${added} −${removed}`;
}

export function changes(count: number): string {
  return count === 1 ? '1 change' : `${count} changes`;
}

export function duration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}
