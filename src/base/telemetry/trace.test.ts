import { expect, test } from 'bun:test';
import { AtollError } from '../error.ts';
import { describeTrace, parseTraceparent, step, traced, traceparent } from './trace.ts';
import type { Span } from './trace.ts';

test('a trace names the steps of its own work only', async () => {
  const work = (name: string) =>
    traced(async () => {
      await step(`${name}-outer`, () => step(`${name}-inner`, async () => {}));
      return name;
    });
  const [a, b] = await Promise.all([work('a'), work('b')]);
  expect(a.result).toBe('a');
  expect(a.serverTiming).toMatch(/^a-inner;dur=[\d.]+, a-outer;dur=[\d.]+, total;dur=[\d.]+$/);
  expect(b.serverTiming).not.toContain('a-');
});

test('a failing step is in the trace, and untraced work is left alone', async () => {
  expect(await step('nobody-looks', async () => 7)).toBe(7);
  const { serverTiming } = await traced(() => step('failing', () => Promise.reject(new Error('no'))).catch(() => {}));
  expect(serverTiming).toContain('failing;dur=');
});

const callersTrace = '4bf92f3577b34da6a3ce929d0e0e4736';
const callersSpan = '00f067aa0ba902b7';

test("spans tell who is below whom, and go on where the caller's trace is", async () => {
  const spans: Span[] = [];
  const inside: (string | undefined)[] = [];
  const work = async () => {
    describeTrace('GET /things', { 'http.response.status_code': 200 });
    await step('outer', () => step('inner', async () => void inside.push(traceparent())));
    await step('failing', () => Promise.reject(new AtollError('no_space', 'full'))).catch(() => {});
  };
  const { traceId } = await traced(work, {
    parent: `00-${callersTrace}-${callersSpan}-01`,
    record: made => spans.push(...made),
  });
  expect(traceId).toBe(callersTrace);
  const [inner, outer, failing, root] = spans;
  expect(spans.map(span => span.name)).toEqual(['inner', 'outer', 'failing', 'GET /things']);
  expect(root).toMatchObject({
    kind: 'server',
    parentSpanId: callersSpan,
    attributes: { 'http.response.status_code': 200 },
    error: undefined,
  });
  expect(inner?.parentSpanId).toBe(outer?.spanId as string);
  expect(outer?.parentSpanId).toBe(root?.spanId as string);
  expect(failing).toMatchObject({ parentSpanId: root?.spanId, error: 'no_space' });
  expect(inside).toEqual([`00-${callersTrace}-${inner?.spanId}-01`]);
  expect(new Set(spans.map(span => span.traceId))).toEqual(new Set([callersTrace]));
  expect(spans.every(span => span.endMs >= span.startMs && span.startMs >= (root?.startMs ?? Infinity))).toBe(true);
});

test('work that the caller does not record is not recorded, and no more than the given share', async () => {
  const recorded: Span[][] = [];
  const record = (spans: Span[]) => void recorded.push(spans);
  await traced(async () => {}, { parent: `00-${callersTrace}-${callersSpan}-00`, record });
  await traced(async () => {}, { record, ratio: 0 });
  expect(recorded).toEqual([]);
  for (let index = 0; index < 200; index++) await traced(async () => {}, { record, ratio: 0.5 });
  expect(recorded.length).toBeGreaterThan(50);
  expect(recorded.length).toBeLessThan(150);
});

test('work after its request is not recorded, and a request of many steps takes little memory', async () => {
  const recorded: Span[][] = [];
  const later = Promise.withResolvers<void>();
  let leftBehind = Promise.resolve();
  const work = async () => {
    leftBehind = later.promise.then(() => step('late', async () => {}));
    for (let index = 0; index < 1000; index++) await step('many', async () => {});
  };
  const { serverTiming } = await traced(work, { record: spans => void recorded.push(spans) });
  later.resolve();
  await leftBehind;
  expect(recorded[0]?.length).toBe(257);
  expect(recorded.flat().some(span => span.name === 'late')).toBe(false);
  expect(serverTiming).not.toContain('late');
});

test("a header that is none of version 00's form begins a new trace", () => {
  expect(parseTraceparent(`00-${callersTrace}-${callersSpan}-01`)).toEqual({
    traceId: callersTrace,
    spanId: callersSpan,
    isRecorded: true,
  });
  expect(parseTraceparent(`cc-${callersTrace}-${callersSpan}-02-more`)).toEqual({
    traceId: callersTrace,
    spanId: callersSpan,
    isRecorded: false,
  });
  const wrong = [
    null,
    '',
    `ff-${callersTrace}-${callersSpan}-01`,
    `00-${callersTrace}-${callersSpan}-01-more`,
    `00-${'0'.repeat(32)}-${callersSpan}-01`,
    `00-${callersTrace}-${'0'.repeat(16)}-01`,
    `00-${callersTrace.toUpperCase()}-${callersSpan}-01`,
    `00-${callersTrace}-${callersSpan}`,
  ];
  for (const text of wrong) expect({ text, parsed: parseTraceparent(text) }).toEqual({ text, parsed: undefined });
});
