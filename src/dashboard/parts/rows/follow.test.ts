import { expect, test } from 'bun:test';
import { follow } from './follow.ts';

const plain = { button: 0, metaKey: false, ctrlKey: false, shiftKey: false, altKey: false };

/** What a click led to. */
function clicked(changes: Partial<typeof plain> = {}): string[] {
  const done: string[] = [];
  follow({ ...plain, ...changes, preventDefault: () => void done.push('kept') }, () => void done.push('opened'));
  return done;
}

test('a plain click goes there in this page', () => {
  expect(clicked()).toEqual(['kept', 'opened']);
});

test('what asks for another window, or for a menu, is the browser’s', () => {
  for (const key of ['metaKey', 'ctrlKey', 'shiftKey', 'altKey'] as const) expect(clicked({ [key]: true })).toEqual([]);
  for (const button of [1, 2]) expect(clicked({ button })).toEqual([]);
});
