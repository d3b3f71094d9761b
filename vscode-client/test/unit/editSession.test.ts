import { describe, expect, test } from 'vitest';
import { EditSession } from '../../src/editSession';
import { applied, delta, edit, result, verified } from './helpers';

const TEXT = 'zero\none\ntwo\nthree\nfour\nfive\n';
const change1 = edit([1, 0], [1, 3], 'ONE');
const insert3 = edit([3, 0], [3, 0], 'new\n');
const remove5 = edit([5, 0], [6, 0], '');
const all = [change1, insert3, remove5];

const session = (): EditSession => new EditSession(TEXT, 7);

function finished(...edits: ReturnType<typeof edit>[]): EditSession {
  const made = session();
  made.finish(result(...edits));
  return made;
}

const shown = (made: EditSession): string[] =>
  made.rows().map(({ kind, text }) => `${SIGNS[kind]}${text}`);
const SIGNS = { same: ' ', removed: '-', replaced: '<', added: '+', changed: '>', accepted: '!' };

describe('what is shown while the edit runs', () => {
  test('nothing but the original at first, unverified', () => {
    expect(shown(session())).toEqual([' zero', ' one', ' two', ' three', ' four', ' five', ' ']);
    expect(
      session()
        .rows()
        .some((row) => row.verified),
    ).toBe(false);
  });

  test('a preview shows old and new lines, in order', () => {
    const made = session();
    expect(made.receive({ kind: 'preview', edits: all })).toBe(true);
    expect(shown(made)).toEqual([
      ...[' zero', '<one', '>ONE', ' two', '+new', ' three', ' four', '-five', ' '],
    ]);
    expect(made.phase).toBe('running');
  });

  test('a delta replaces what was shown for its lines and nothing else', () => {
    const made = session();
    made.receive({ kind: 'preview', edits: all });
    made.receive(delta(0, 3, edit([2, 0], [2, 3], 'TWO')));
    expect(shown(made)).toEqual([
      ...[' zero', ' one', '<two', '>TWO', '+new', ' three', ' four', '-five', ' '],
    ]);
    made.receive(delta(3, 7));
    expect(shown(made)).toEqual([' zero', ' one', '<two', '>TWO', ' three', ' four', ' five', ' ']);
  });

  test('a delta with an insertion at its end takes the place of the one shown there', () => {
    const made = session();
    made.receive({ kind: 'preview', edits: [insert3] });
    made.receive(delta(0, 3, edit([3, 0], [3, 0], 'other\n')));
    expect(shown(made)).toContain('+other');
    expect(shown(made)).not.toContain('+new');
  });

  test('verified lines only grow, whatever order reports come in', () => {
    const made = session();
    made.receive({ kind: 'preview', edits: [change1] });
    expect(made.receive(verified(3))).toBe(true);
    expect(made.receive(verified(1))).toBe(false);
    expect(made.rows().map((row) => row.verified)).toEqual([
      ...[true, true, true, true, false, false, false, false],
    ]);
  });

  test('what differs within a changed line', () => {
    const made = session();
    made.receive({ kind: 'preview', edits: [edit([3, 2], [3, 3], 'RR')] });
    const rows = made.rows().filter((row) => row.differs !== undefined);
    expect(rows.map(({ text, differs }) => [text, differs])).toEqual([
      ['three', [2, 3]],
      ['thRRee', [2, 4]],
    ]);
  });

  test('lines that share no more than their indentation differ as a whole', () => {
    const made = new EditSession('  one\n', 1);
    made.receive({ kind: 'preview', edits: [edit([0, 0], [0, 5], '  two')] });
    expect(made.rows().map((row) => row.differs)).toEqual([undefined, undefined, undefined]);
  });
});

describe('the result', () => {
  test('replaces what was shown, and late partial results change nothing', () => {
    const made = session();
    made.receive({ kind: 'preview', edits: all });
    made.finish(result(insert3));
    expect(made.receive({ kind: 'preview', edits: all })).toBe(false);
    expect(made.receive(verified(2))).toBe(false);
    expect(made.hunkCount).toBe(1);
    expect(made.phase).toBe('reviewing');
    expect(made.rows().every((row) => row.verified)).toBe(true);
  });

  test('cannot be decided before it is there', () => {
    expect(() => {
      session().decide('accepted');
    }).toThrow('finished');
  });

  test('another version of the document makes it stale', () => {
    expect(session().isStale(7)).toBe(false);
    expect(session().isStale(8)).toBe(true);
  });
});

describe('deciding', () => {
  test('accepting all gives all edits at once, ascending', () => {
    const made = finished(...all);
    made.decide('accepted');
    expect(made.phase).toBe('decided');
    expect(made.accepted()).toEqual(all);
    expect(made.counts()).toEqual({ added: 2, removed: 2 });
    expect(applied(TEXT, made.accepted())).toBe(made.result().join('\n'));
  });

  test('rejecting all gives none, and shows the original', () => {
    const made = finished(...all);
    made.decide('rejected');
    expect(made.accepted()).toEqual([]);
    expect(made.result().join('\n')).toBe(TEXT);
  });

  test('hunk by hunk, in any order; only accepted ones are applied', () => {
    const made = finished(...all);
    made.decide('accepted', 2);
    made.decide('rejected', 0);
    expect(made.phase).toBe('reviewing');
    expect(made.nextUndecided(2)).toBe(1);
    expect(made.undecidedCount).toBe(1);
    made.decide('accepted', 1);
    expect(made.phase).toBe('decided');
    expect(made.accepted()).toEqual([insert3, remove5]);
    expect(applied(TEXT, made.accepted())).toBe('zero\none\ntwo\nnew\nthree\nfour\n');
    expect(shown(made)).toEqual([' zero', ' one', ' two', '!new', ' three', ' four', ' ']);
  });

  test('a decision stands: deciding the rest leaves it alone', () => {
    const made = finished(...all);
    made.decide('rejected', 0);
    made.decide('accepted');
    expect(made.accepted()).toEqual([insert3, remove5]);
    made.decide('accepted', 0);
    expect(made.decision(0)).toBe('rejected');
  });

  test('no edits at all are nothing to review', () => {
    expect(finished().phase).toBe('decided');
  });
});

test('a line of the original is found again after the accepted hunks', () => {
  const made = finished(...all);
  made.decide('accepted', 1);
  made.decide('accepted', 2);
  expect([0, 1, 2, 3, 4, 5, 6].map((line) => made.lineAfter(line))).toEqual([0, 1, 2, 4, 5, 6, 6]);
});
