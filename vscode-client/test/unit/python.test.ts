import { describe, expect, test } from 'vitest';
import { Failure } from '../../src/failures';
import { findPython, fits, parseAnswer, type Answer, type Candidate } from '../../src/python';

const good: Answer = { python: [3, 11], server: '0.1.4' };
const old: Answer = { python: [3, 9], server: '0.1.0' };
const bare: Answer = { python: [3, 12], error: "No module named 'apply_server'" };
const none: Answer = { error: 'no such file' };

function find(
  answers: Record<string, Answer>,
  source: Candidate['source'] = 'path',
): Promise<Candidate> {
  const candidates = Object.keys(answers).map((path) => ({ path, source }));
  return findPython(candidates, (path) => Promise.resolve(answers[path] ?? none), '0.1.0');
}

async function failure(found: Promise<unknown>): Promise<Failure> {
  const error: unknown = await found.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Failure);
  return error as Failure;
}

describe('finding Python', () => {
  test('the first that has a fitting server', async () => {
    const found = await find({ py1: none, py2: old, py3: bare, py4: good, py5: good });
    expect(found.path).toBe('py4');
  });

  test('a setting is binding', async () => {
    const candidates: Candidate[] = [
      { path: 'mine', source: 'setting' },
      { path: 'other', source: 'path' },
    ];
    const answers = (path: string): Promise<Answer> =>
      Promise.resolve(path === 'mine' ? bare : good);
    const missing = await failure(findPython(candidates, answers, '0.1.0'));
    expect(missing.message).toBe(
      "The Python package apply-server isn't installed for mine (No module named 'apply_server').",
    );
    expect(missing.details).toEqual({ python: 'mine', source: 'setting' });
  });

  test('the nearest miss is told, with a Python to install with', async () => {
    const missing = await failure(find({ py1: old, py2: bare, py3: none }));
    expect(missing.code).toBe('ServerMissing');
    expect(missing.details.python).toBe('py2');
  });

  test.each([
    [{ py: none }, 'Python 3.11 or newer is needed, and none was found.'],
    [{ py: old }, 'Python 3.11 or newer is needed; py is 3.9.'],
    [
      { py: { python: [3, 11], server: '0.2.0' } as const },
      "apply-server 0.2.0 of py doesn't fit this extension, which needs 0.1.",
    ],
  ])('%j', async (answers, sentence) => {
    expect((await failure(find(answers as Record<string, Answer>))).message).toBe(sentence);
  });

  test('what does not run is no Python to install with', async () => {
    expect((await failure(find({ py: none }, 'setting'))).details.python).toBeUndefined();
  });
});

test('answers', () => {
  expect(parseAnswer('a warning\n{"python": [3, 11]}\n')).toEqual({ python: [3, 11] });
  expect(parseAnswer('Segmentation fault')).toEqual({ error: 'Segmentation fault' });
  expect(parseAnswer('')).toEqual({ error: 'it printed nothing' });
});

test('versions fit within a series', () => {
  expect(fits('0.1.9', '0.1.0')).toBe(true);
  expect(fits('0.10.0', '0.1.0')).toBe(false);
});
