import { expect, test } from 'vitest';
import { RestartPolicy } from '../../src/restarts';

const MINUTE = 60_000;

function policy(): { at: (ms: number) => number | undefined; reset: () => void } {
  let now = 0;
  const made = new RestartPolicy(() => now);
  return {
    at: (ms) => {
      now = ms;
      return made.next();
    },
    reset: () => {
      made.reset();
    },
  };
}

test('each restart waits twice as long as the one before', () => {
  const { at } = policy();
  expect([0, 1, 2, 3, 4].map(at)).toEqual([250, 500, 1000, 2000, 4000]);
});

test('the sixth death in three minutes is the last', () => {
  const { at } = policy();
  [0, 1, 2, 3, 4].forEach(at);
  expect(at(3 * MINUTE - 1)).toBeUndefined();
});

test('deaths of more than three minutes ago are forgotten', () => {
  const { at } = policy();
  [0, 1, 2, 3, 4].forEach(at);
  expect(at(3 * MINUTE)).toBe(4000);
  expect(at(10 * MINUTE)).toBe(250);
});

test('after a start that a person asked for, counting begins anew', () => {
  const { at, reset } = policy();
  [0, 1, 2, 3, 4, 5].forEach(at);
  reset();
  expect(at(6)).toBe(250);
});
