import { expect, test } from 'bun:test';
import type { Command } from './terminal/command.ts';
import { manualPage } from './manual.ts';

const command = (name: string, usage: string, summary: string): Command => ({
  name,
  usage,
  summary,
  run: async () => 0,
});

test('the manual has every command that the list has, and no text of it is a macro', () => {
  const page = manualPage(
    [
      command('thing make', '[--size N] NAME', "Makes a thing, as in `.BR 'x\\y'`"),
      command('dot', '', '.begins with a dot'),
      command('__hidden', '', ''),
    ],
    '1.2.3',
  );
  expect(page).toContain('\\fBatoll thing make\\fR [\\-\\-size N] NAME\n');
  expect(page).toContain('as in `.BR \\(aqx\\(rsy\\(aq`.\n');
  expect(page).toContain('\n\\&.begins with a dot.\n');
  expect(page).not.toContain('hidden');
  const macros = new Set(page.split('\n').flatMap(line => /^[.'](\S*)/.exec(line)?.[1] ?? []));
  expect([...macros].toSorted()).toEqual(['B', 'BR', 'I', 'SH', 'TH', 'TP']);
});
