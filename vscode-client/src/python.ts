/**
 * Which Python runs the server, and what to say where none can. Must not know `vscode`: candidates
 * and the way to ask them are given.
 */

import { Failure } from './failures';

export const MINIMUM = [3, 11] as const;

/** Where a candidate comes from. Only a setting is binding: the others are tried in turn. */
export type Source = 'setting' | 'interpreter' | 'path' | 'installed';

export interface Candidate {
  readonly path: string;
  readonly source: Source;
}

/** What a Python said of itself; `error` where it couldn't be run or has no apply_server. */
export interface Answer {
  readonly python?: readonly [number, number];
  readonly server?: string;
  readonly error?: string;
}

export type Ask = (path: string) => Promise<Answer>;

/** Printed as JSON by a candidate. pygls is asked for as well: without it there is no server. */
export const QUESTION = `
import json, sys
answer = {"python": list(sys.version_info[:2])}
try:
    import apply_server, pygls
    answer["server"] = apply_server.__version__
except Exception as error:
    answer["error"] = str(error)
print(json.dumps(answer))
`;

/** A candidate's answer, from what it printed; anything else is an error. */
export function parseAnswer(output: string): Answer {
  try {
    const answer: unknown = JSON.parse(output.trim().split('\n').at(-1) ?? '');
    return typeof answer === 'object' && answer !== null ? answer : { error: output };
  } catch {
    return { error: output.trim() || 'it printed nothing' };
  }
}

/**
 * The first candidate with a fitting server. Raises a Failure `ServerMissing` that says what is
 * missing; its details name the `python` that a server could be installed with, and `source`.
 */
export async function findPython(
  candidates: readonly Candidate[],
  ask: Ask,
  wanted: string,
): Promise<Candidate> {
  const misses: Miss[] = [];
  const binding = candidates.filter(({ source }) => source === 'setting');
  for (const candidate of binding.length > 0 ? binding : candidates) {
    const answer = await ask(candidate.path);
    const miss = missing(candidate, answer, wanted);
    if (miss === undefined) {
      return candidate;
    }
    misses.push(miss);
  }
  throw failureFor(misses);
}

/** Whether a server's version fits: the same major and minor number as the extension's. */
export function fits(server: string, wanted: string): boolean {
  return series(server) === series(wanted);
}

function series(version: string): string {
  return version.split('.').slice(0, 2).join('.');
}

interface Miss {
  readonly candidate: Candidate;
  readonly sentence: string;
  /** How near it comes: 0 doesn't run, 1 too old, 2 no server, 3 another version of it. */
  readonly rank: number;
}

function missing(candidate: Candidate, answer: Answer, wanted: string): Miss | undefined {
  const { path } = candidate;
  const python = answer.python;
  if (python === undefined) {
    const reason = answer.error ?? 'it gave no answer';
    return { candidate, rank: 0, sentence: `${path} can't be run as Python: ${reason}.` };
  }
  if (python[0] < MINIMUM[0] || (python[0] === MINIMUM[0] && python[1] < MINIMUM[1])) {
    const is = python.join('.');
    return {
      candidate,
      rank: 1,
      sentence: `Python ${MINIMUM.join('.')} or newer is needed; ${path} is ${is}.`,
    };
  }
  if (answer.server === undefined) {
    const reason = answer.error === undefined ? '' : ` (${answer.error})`;
    return {
      candidate,
      rank: 2,
      sentence: `The Python package apply-server isn't installed for ${path}${reason}.`,
    };
  }
  if (!fits(answer.server, wanted)) {
    const sentence = `apply-server ${answer.server} of ${path} doesn't fit this extension, which needs ${series(wanted)}.`;
    return { candidate, rank: 3, sentence };
  }
  return undefined;
}

function failureFor(misses: readonly Miss[]): Failure {
  const nearest = misses.reduce<Miss | undefined>(
    (best, miss) => (best === undefined || miss.rank > best.rank ? miss : best),
    undefined,
  );
  if (nearest === undefined || (nearest.rank === 0 && nearest.candidate.source !== 'setting')) {
    return new Failure(
      'ServerMissing',
      `Python ${MINIMUM.join('.')} or newer is needed, and none was found.`,
    );
  }
  const usable = nearest.rank >= 2;
  return new Failure('ServerMissing', nearest.sentence, {
    ...(usable ? { python: nearest.candidate.path } : {}),
    source: nearest.candidate.source,
  });
}
