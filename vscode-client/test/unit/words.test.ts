import { expect, test } from 'vitest';
import { diffOf, Failure, failureOf, guardsOf } from '../../src/failures';
import { remembered } from '../../src/history';
import { RestartPolicy } from '../../src/restarts';
import * as words from '../../src/words';

test('what the status bar says', () => {
  expect(words.applied('cart.py', { added: 15, removed: 3 }, 188, 450)).toBe(
    'Applied cart.py +15 −3 · 450 ms · 92% copied',
  );
  expect(words.duration(1250)).toBe('1.3 s');
  expect(words.progress({ share: 0.42, tokensPerS: 310.4, copiedShare: 0.92 })).toBe(
    '42% · 310 tokens/s · 92% copied',
  );
  expect(words.progress({ share: 0.1, tokensPerS: 0, copiedShare: 0 })).toBe('10%');
  expect(words.changes(1)).toBe('1 change');
});

test('errors of the server keep their code, message and details', () => {
  const details = { guards: ['removal'], diff: '-a' };
  const data = { code: 'GuardBlocked', message: 'Most of the file is gone.', details };
  const failure = failureOf(Object.assign(new Error('x'), { code: -32803, data }));
  expect([failure.code, failure.message]).toEqual(['GuardBlocked', 'Most of the file is gone.']);
  expect(guardsOf(failure)).toEqual(['removal']);
  expect(diffOf(failure)).toBe('-a');
});

test('errors without data are told by their number, others by their words', () => {
  expect(failureOf(Object.assign(new Error('x'), { code: -32800 })).code).toBe('Cancelled');
  expect(failureOf(Object.assign(new Error('x'), { code: -32801 })).message).toBe(
    'The file changed since it was read.',
  );
  expect(failureOf('boom')).toMatchObject({ code: 'InternalError', message: 'boom' });
  const own = new Failure('Busy', 'Wait.');
  expect(failureOf(own)).toBe(own);
});

test('the last instruction comes first, once, and the oldest are forgotten', () => {
  expect(remembered(['a', 'b', 'c'], 'b')).toEqual(['b', 'a', 'c']);
  const many = Array.from({ length: 40 }, (_, i) => String(i));
  expect(remembered(many, 'new')).toHaveLength(30);
});

test('at most 5 restarts in 3 minutes, each later than the one before', () => {
  let now = 0;
  const policy = new RestartPolicy(() => now);
  const delays = Array.from({ length: 6 }, () => policy.next());
  expect(delays).toEqual([250, 500, 1000, 2000, 4000, undefined]);
  now = 3 * 60 * 1000;
  expect(policy.next()).toBe(250);
  policy.reset();
  expect(policy.next()).toBe(250);
});
