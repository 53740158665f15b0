import { afterEach, expect, mock, spyOn, test } from 'bun:test';
import { LogIntake } from './log-intake.ts';
import type { AgentPlace } from './log-line.ts';

afterEach(() => mock.restore());

/** An intake whose clock the test sets, and its output. */
function intakeAt(
  startMs: number,
  { createdMs, place, addMs = 0 }: { createdMs?: number; place?: AgentPlace; addMs?: number } = {},
) {
  let nowMs = startMs;
  spyOn(performance, 'now').mockImplementation(() => nowMs);
  const out: (number | string)[] = [];
  const fields: Record<string, string>[] = [];
  const intake = new LogIntake(
    {
      place: async () => undefined,
      add: (_, { number }) => {
        out.push(number);
        nowMs += addMs;
      },
      gap: (text, about) => void (out.push(text), fields.push(about)),
    },
    createdMs,
  );
  intake.place = place ?? { epoch: 'a', number: 0 };
  intake.beginSecond();
  return { intake, out, fields, pass: (ms: number) => void (nowMs += ms) };
}

const line = (n: number, t = Date.now()) => JSON.stringify({ n, t, l: 1, logger: 'process', message: 'm', fields: {} });
const many = 'entries are dropped: there are more than 1000 a second';

test('the bytes read in a second are limited, and the answer says how long the rest waits', () => {
  const { intake, pass } = intakeAt(5_000);
  expect(intake.count(200_000)).toBe(0);
  pass(400);
  expect([intake.count(62_143), intake.hasRoom]).toEqual([0, true]);
  expect([intake.count(1), intake.hasRoom]).toEqual([600, false]);
  // What was already under way still comes, and counts.
  pass(599.5);
  expect(intake.count(1 << 20)).toBe(1);
  pass(0.5);
  intake.beginSecond();
  expect(intake.hasRoom).toBeTrue();
  // An idle second saves nothing up and owes nothing.
  pass(10_000);
  expect([intake.count(262_143), intake.count(1)]).toEqual([0, 1000]);
});

test('the lines and pieces read in a second are limited, however few bytes they have', () => {
  const { intake, pass } = intakeAt(5_000);
  for (let n = 1; n <= 1_999; n++) {
    intake.countPiece();
    intake.take(line(n));
  }
  intake.countPiece();
  expect([intake.count(1), intake.hasRoom]).toEqual([0, true]);
  intake.countPiece();
  expect([intake.count(1), intake.hasRoom]).toEqual([1_000, false]);
  pass(1_000);
  intake.beginSecond();
  expect(intake.hasRoom).toBeTrue();
});

test('the time that entries take in a second is limited, however few they are', () => {
  const { intake, out, pass } = intakeAt(5_000, { addMs: 25 });
  intake.take(line(1));
  expect([intake.count(1), intake.hasRoom]).toEqual([0, true]);
  intake.take(line(2));
  expect([intake.count(1), intake.hasRoom]).toEqual([950, false]);
  pass(950);
  expect([intake.count(1), intake.hasRoom]).toEqual([0, true]);
  expect(out).toEqual([1, 2]);
});

test('the entries of a second are limited, and those beyond are one gap', () => {
  const { intake, out, fields, pass } = intakeAt(5_000);
  for (let n = 1; n <= 1500; n++) intake.take(line(n));
  expect(out).toEqual([...Array.from({ length: 1000 }, (_, index) => index + 1), many]);
  expect(fields).toEqual([{ event: 'dropped' }]);
  // The intake still takes them: nobody asks for them again.
  expect(intake.place).toEqual({ epoch: 'a', number: 1500 });
  pass(999);
  intake.beginSecond();
  intake.take(line(1501));
  expect(out).toHaveLength(1001);
  pass(1);
  intake.beginSecond();
  intake.take(line(1502));
  expect(out.slice(1001)).toEqual([1502]);
});

test('gaps of the agent count as entries, and are reported while there is room', () => {
  const { intake, out, fields } = intakeAt(5_000, { place: { epoch: 'a', number: 1 } });
  for (let n = 3; n <= 1003; n += 2) intake.take(line(n));
  const gap = '1 entries were dropped: there were too many at a time';
  expect(out.slice(0, 4)).toEqual([gap, 3, gap, 5]);
  expect(fields[0]).toEqual({ event: 'dropped', entries: '1' });
  expect(out.slice(998)).toEqual([gap, 1001, many]);
  intake.take(line(2000));
  expect(out).toHaveLength(1001);
});

test('an entry is taken once, and a gap is one behind an entry that is known', () => {
  const { intake, out } = intakeAt(5_000);
  // Entries from before the agent was first followed are no gap.
  for (const n of [4, 4, 3, 5]) intake.take(line(n));
  expect(out).toEqual([4, 5]);
  intake.take(JSON.stringify({ epoch: 'a' }));
  intake.take(line(5));
  expect(out).toEqual([4, 5]);
  intake.take(JSON.stringify({ epoch: 'b' }));
  for (const n of [2, 4]) intake.take(line(n));
  expect(out).toEqual([4, 5, 2, '1 entries were dropped: there were too many at a time', 4]);
  expect(intake.place).toEqual({ epoch: 'b', number: 4 });
});

test('entries older than the sandbox belong to another one, and count as read', () => {
  const createdMs = Date.now() - 1000;
  const { intake, out } = intakeAt(5_000, { createdMs });
  for (const [n, t] of [
    [1, createdMs - 1],
    [3, createdMs - 1],
    [4, createdMs],
  ] as const)
    intake.take(line(n, t));
  expect(out).toEqual([4]);
  const any = intakeAt(5_000);
  any.intake.take(line(1, 0));
  expect(any.out).toEqual([1]);
});

test('lines that are not of a log are refused, and an entry before its epoch is ignored', () => {
  const { intake, out } = intakeAt(5_000);
  for (const text of ['', 'text', '{}', '{"n":0}']) expect(() => intake.take(text)).toThrow('no log');
  intake.place = undefined;
  intake.take(line(1));
  expect([out, intake.place]).toEqual([[], undefined]);
});
