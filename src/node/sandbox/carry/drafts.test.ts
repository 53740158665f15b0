import { afterEach, beforeEach, expect, jest, test } from 'bun:test';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newUuid } from '../../../base/id.ts';
import { Drafts } from './drafts.ts';
import type { KnownPages } from './known-pages.ts';

let folder = '';
let place = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'atoll-drafts-'));
  place = join(folder, 'drafts');
});
afterEach(() => {
  jest.useRealTimers();
  // Something that was dropped may be removed at this moment.
  rmSync(folder, { recursive: true, force: true });
});

const draftOf = (executionId = 'e') => ({ sandboxId: 's', executionId, draftId: newUuid() });
const refusal = (code: string) => expect.objectContaining({ code }) as Error;
/** Pages that record when nobody looks for them any more. */
function pages() {
  const state = { disposed: 0 };
  return { state, known: { [Symbol.dispose]: () => state.disposed++ } as unknown as KnownPages };
}

test('a draft is found when it is whole, by its ID and its execution', () => {
  const drafts = new Drafts(place);
  const draft = draftOf();
  const made = drafts.begin(draft);
  expect(made).toBe(join(place, draft.draftId));
  expect(statSync(made).mode & 0o777).toBe(0o700);
  expect(drafts.find(draft)).toBeUndefined();
  expect(() => drafts.require(draft)).toThrow(refusal('not_found'));
  const { known } = pages();
  drafts.finish(draft, known);
  expect(drafts.require(draft)).toMatchObject({ draftId: draft.draftId, folder: made, known });
  expect(drafts.find({ ...draft, executionId: 'another' })).toBeUndefined();
  expect(drafts.find(draftOf())).toBeUndefined();
});

test('a restart drops all, and each is dropped by its ID', async () => {
  const drafts = new Drafts(place);
  const draft = draftOf();
  drafts.begin(draft);
  const { known, state } = pages();
  drafts.finish(draft, known);
  await drafts.drop(draft);
  expect(drafts.find(draft)).toBeUndefined();
  expect([existsSync(join(place, draft.draftId)), state.disposed]).toEqual([false, 1]);
  await drafts.drop(draft);
  expect(state.disposed).toBe(1);
  drafts.begin(draft);
  void new Drafts(place);
  expect(readdirSync(place)).toEqual([]);
});

test('pages of one that was dropped before it was whole are given back', async () => {
  const drafts = new Drafts(place);
  const draft = draftOf();
  drafts.begin(draft);
  await drafts.drop(draft);
  const { known, state } = pages();
  drafts.finish(draft, known);
  expect(state.disposed).toBe(1);
  expect(drafts.find(draft)).toBeUndefined();
});

test('one execution has one draft, a node has eight, and no name leads elsewhere', async () => {
  const drafts = new Drafts(place);
  const [first, ...others] = Array.from({ length: 8 }, (_, index) => draftOf(`e${index}`));
  drafts.begin(first!);
  expect(() => drafts.begin(draftOf('e0'))).toThrow(refusal('conflict'));
  for (const draft of others) drafts.begin(draft);
  expect(() => drafts.begin(draftOf('e8'))).toThrow(refusal('unavailable'));
  await drafts.drop(first!);
  drafts.begin(draftOf('e0'));
  for (const draftId of [`../${'a'.repeat(33)}`, 'short', `${newUuid()}0`])
    expect(() => drafts.begin({ ...draftOf('e9'), draftId })).toThrow(refusal('invalid'));
});

test('the files of one that came are it, whole', async () => {
  const drafts = new Drafts(place);
  const [draft, from] = [draftOf(), join(folder, 'came')];
  mkdirSync(from);
  writeFileSync(join(from, 'disk.img'), 'content');
  await drafts.put(draft, from);
  expect(readFileSync(join(drafts.require(draft).folder, 'disk.img'), 'utf8')).toBe('content');
  expect(existsSync(from)).toBe(false);
  await expect(drafts.put(draftOf(), from)).rejects.toMatchObject({ code: 'conflict' });
});

test('one that no pause comes for is dropped after three minutes', () => {
  jest.useFakeTimers();
  const drafts = new Drafts(place);
  const draft = draftOf();
  drafts.begin(draft);
  drafts.finish(draft);
  jest.advanceTimersByTime(3 * 60_000 - 1);
  expect(drafts.find(draft)).toBeDefined();
  jest.advanceTimersByTime(1);
  expect(drafts.find(draft)).toBeUndefined();
});

test('one that was dropped leaves the next of its ID alone', async () => {
  jest.useFakeTimers();
  const drafts = new Drafts(place);
  const draft = draftOf();
  drafts.begin(draft);
  await drafts.drop(draft);
  jest.advanceTimersByTime(60_000);
  drafts.begin(draft);
  drafts.finish(draft);
  jest.advanceTimersByTime(2 * 60_000 + 1);
  expect(drafts.find(draft)).toBeDefined();
});
