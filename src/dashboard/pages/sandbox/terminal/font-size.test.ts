import { afterEach, beforeEach, expect, test } from 'bun:test';
import { keepFontPixels, keptFontPixels } from './font-size.ts';

const kept = new Map<string, string>();
beforeEach(() =>
  Object.assign(globalThis, {
    localStorage: {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
    },
  }),
);
afterEach(() => {
  kept.clear();
  Reflect.deleteProperty(globalThis, 'localStorage');
});

test('the terminal has a size before one was chosen', () => expect(keptFontPixels()).toBe(13));

for (const [wanted, had] of [
  [9, 9],
  [8, 9],
  [16, 16],
  [24, 24],
  [25, 24],
] as const)
  test(`of ${wanted} pixels ${had} are kept`, () => {
    expect(keepFontPixels(wanted)).toBe(had);
    expect(keptFontPixels()).toBe(had);
  });

for (const text of ['8', '25', '12.5', 'large', ''])
  test(`what was kept as "${text}" is not taken`, () => {
    kept.set('atoll.terminal.font', text);
    expect(keptFontPixels()).toBe(13);
  });
