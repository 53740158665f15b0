import { expect, test } from 'bun:test';
import { isTest, sourceFiles } from './source-files.ts';

/** Waits of fewer milliseconds give others a turn, and prove nothing. */
const shortMs = 50;

/** A statement that waits for a time: by a number, or by a name for one. */
const wait = /^( *)await (?:Bun\.sleep|sleep)\((?:([\d_]+)|\w+Ms)\);/;
/** Repeatedly asks whether something is so: the time is an interval, not a duration. */
const asksAgain = /^\s*(?:for|while|do)\b/;
/** A time in which something must not happen, which no state can show: the comment above it says so. */
const window = /^\s*\/\/ A window\b/;

/** Lines of a text that wait for a time where they could wait for a state. */
function waitsIn(text: string): number[] {
  const lines = text.split('\n');
  return lines.flatMap((line, index) => {
    const [, indent = '', number] = wait.exec(line) ?? [];
    if (!wait.test(line) || (number !== undefined && Number(number.replaceAll('_', '')) < shortMs)) return [];
    const before = lines.slice(0, index);
    const block = before.findLast(above => above.trim() !== '' && above.search(/\S/) < indent.length) ?? '';
    const comment = before.slice(-3).some(above => window.test(above));
    return comment || asksAgain.test(block) ? [] : [index + 1];
  });
}

// A fixed time is too short on a busy machine, and wasted on an idle one. Tests wait for what can be seen.
test('tests wait for states; a wait for a time says of which window it is', () => {
  const files = sourceFiles(['src', 'test']).filter(({ path }) => isTest(path) || path.startsWith('test/'));
  expect(files.length).toBeGreaterThan(400);
  expect(files.flatMap(({ path, text }) => waitsIn(text).map(line => `${path}:${line}`))).toEqual([]);
});

test('a wait for a time is found, and one that asks again or is a window is not', () => {
  const text = [
    'async function wait() {',
    '  await Bun.sleep(1_000);',
    '  // A window: nothing may come in it.',
    '  await Bun.sleep(200);',
    '  while (!ready) {',
    '    look();',
    '    await Bun.sleep(100);',
    '  }',
    '  await Bun.sleep(5);',
    '  await sleep(aWhileMs);',
    '}',
  ].join('\n');
  expect(waitsIn(text)).toEqual([2, 10]);
});
