import { expect, test } from 'vitest';
import { hunksOf, splitLines } from '../../src/hunks';
import { edit } from './helpers';

const lines = ['a', 'b', 'c', 'd', ''];
const plain = (edits: ReturnType<typeof edit>[]): unknown[] =>
  hunksOf(lines, edits).map(({ start, end, lines: text }) => [start, end, text]);

test('lines are split as VS Code splits them', () => {
  expect(splitLines('a\r\nb\rc\n')).toEqual(['a', 'b', 'c', '']);
  expect(splitLines('a\fb\u2028c')).toEqual(['a\fb\u2028c']);
});

test.each([
  ['a change within a line', [edit([1, 0], [1, 1], 'B')], [[1, 2, ['B']]]],
  ['an insertion of lines', [edit([1, 0], [1, 0], 'x\ny\n')], [[1, 1, ['x', 'y']]]],
  ['an insertion at the end of a line', [edit([0, 1], [0, 1], '\nx')], [[1, 1, ['x']]]],
  ['a removal of lines', [edit([1, 0], [3, 0], '')], [[1, 3, []]]],
  ['a removal from the end of a line', [edit([0, 1], [2, 1], '')], [[1, 3, []]]],
  ['lines at the end of the file', [edit([4, 0], [4, 0], 'e\n')], [[4, 4, ['e']]]],
  ['CRLF in the new text', [edit([1, 0], [2, 0], 'x\r\ny\r\n')], [[1, 2, ['x', 'y']]]],
])('%s', (_, edits, wanted) => {
  expect(plain(edits)).toEqual(wanted);
});

test('edits of neighbouring lines are one hunk, others are not', () => {
  const edits = [edit([0, 0], [0, 1], 'A'), edit([1, 0], [1, 1], 'B'), edit([3, 0], [3, 1], 'D')];
  expect(plain(edits)).toEqual([
    [0, 2, ['A', 'B']],
    [3, 4, ['D']],
  ]);
  expect(hunksOf(lines, edits).map((hunk) => hunk.edits.length)).toEqual([2, 1]);
});

test('two edits in one line are one hunk with both in place', () => {
  const edits = [edit([1, 0], [1, 0], 'x'), edit([1, 1], [1, 1], 'y')];
  expect(plain(edits)).toEqual([[1, 2, ['xby']]]);
});

test('a file without a final newline', () => {
  const grown = hunksOf(['a', 'b'], [edit([1, 1], [1, 1], '\nc')]);
  expect(grown).toMatchObject([{ start: 2, end: 2, lines: ['c'] }]);
});
