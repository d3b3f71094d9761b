/** The instructions given so far, the last one first. Must not know `vscode` nor where it is kept. */

const MOST = 30;

/** `history` with `instruction` as its first entry, without repeats. */
export function remembered(history: readonly string[], instruction: string): string[] {
  return [instruction, ...history.filter((entry) => entry !== instruction)].slice(0, MOST);
}
