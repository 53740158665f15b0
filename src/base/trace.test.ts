import { expect, test } from 'bun:test';
import { step, traced } from './trace.ts';

test('a trace names the steps of its own work only', async () => {
  const work = (name: string) => traced(async () => {
    await step(`${name}-outer`, () => step(`${name}-inner`, async () => {}));
    return name;
  });
  const [a, b] = await Promise.all([work('a'), work('b')]);
  expect(a.result).toBe('a');
  expect(a.serverTiming).toMatch(/^a-inner;dur=[\d.]+, a-outer;dur=[\d.]+, total;dur=[\d.]+$/);
  expect(b.serverTiming).not.toContain('a-');
});

test('a step that fails is in the trace, and untraced work is left alone', async () => {
  expect(await step('nobody-looks', async () => 7)).toBe(7);
  const { serverTiming } = await traced(() => step('failing', () => Promise.reject(new Error('no'))).catch(() => {}));
  expect(serverTiming).toContain('failing;dur=');
});
