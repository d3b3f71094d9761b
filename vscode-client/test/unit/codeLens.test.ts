import { beforeEach, expect, test, vi } from 'vitest';
import { EditSession } from '../../src/editSession';
import type { Job } from '../../src/job';
import { Lenses } from '../../src/review/codeLens';
import { delta, edit, result, verified } from './helpers';

vi.mock('vscode', () => ({
  EventEmitter: class {
    private listener: () => void = () => undefined;
    readonly event = (listener: () => void): void => {
      this.listener = listener;
    };
    fire(): void {
      this.listener();
    }
  },
  languages: { registerCodeLensProvider: vi.fn() },
}));

const change = edit([1, 0], [1, 1], 'B');
let asked = 0;
let session: EditSession;
let jobs: Job[];
let lenses: Lenses;

beforeEach(() => {
  session = new EditSession('a\nb\nc\n', 1);
  jobs = [{ session, preview: { uri: 'apply-edit:/a' } } as unknown as Job];
  lenses = new Lenses(() => jobs[0]);
  asked = 0;
  lenses.onDidChangeCodeLenses(() => {
    asked += 1;
  });
  lenses.refresh(jobs);
});

test('a running edit does not have its lenses asked for again and again', () => {
  asked = 0;
  for (const part of [verified(1), delta(0, 2, change), verified(2)]) {
    session.receive(part);
    lenses.refresh(jobs);
  }
  expect(asked).toBe(0);
});

test('they are asked for when the edit is finished, and at each decision', () => {
  asked = 0;
  session.finish(result(change));
  lenses.refresh(jobs);
  expect(asked).toBe(1);
  session.decide('accepted', 0);
  lenses.refresh(jobs);
  lenses.refresh(jobs);
  expect(asked).toBe(2);
});
