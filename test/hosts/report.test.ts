import { expect, test } from 'bun:test';
import { newestOf, reportsIn, tableOf, withNewer } from './report.ts';

test('hosts are columns and features are rows, also where a host was not asked for one', () => {
  const about = { controlGroups: 'v2 alone', node: 'v18' };
  const table = tableOf([
    {
      ...about,
      title: 'Old',
      kernel: '6.1',
      findings: [{ feature: 'fork', verdict: 'refused', detail: 'no\nCRIU | here' }],
    },
    {
      ...about,
      title: 'New',
      kernel: '6.12',
      findings: [
        { feature: 'fork', verdict: 'works', detail: '' },
        { feature: 'files', verdict: 'fails', detail: 'x'.repeat(500) },
      ],
    },
  ]);
  const lines = table.trim().split('\n');
  expect(lines).toContain('| kernel | 6.1 | 6.12 |');
  expect(lines).toContain('| fork | refused: no CRIU \\| here | works |');
  expect(lines.find(line => line.startsWith('| files'))).toMatch(/^\| files \| – \| \*\*fails\*\*: x{100,200} \|$/);
});

test('a column says which commits its rows were seen with', () => {
  const about = { title: 'Old', kernel: '6.1', controlGroups: 'v2 alone', node: 'v18' };
  const seen = (feature: string, commit?: string) =>
    ({ feature, verdict: 'works', detail: '', ...(commit && { commit }) }) as const;
  expect(tableOf([{ ...about, findings: [seen('fork', 'abc'), seen('files', 'abc')] }])).toContain(
    '| commit of Atoll | abc |',
  );
  expect(tableOf([{ ...about, findings: [seen('fork'), seen('files', 'abc'), seen('down', 'abc')] }])).toContain(
    '| commit of Atoll | abc (2), before (1) |',
  );
});

test('a newer finding takes the place of the older one of its feature, and what is new comes last', () => {
  const [older, newer] = [
    { feature: 'fork', verdict: 'fails', detail: 'then' },
    { feature: 'fork', verdict: 'works', detail: 'now' },
  ] as const;
  const files = { feature: 'files', verdict: 'works', detail: '' } as const;
  const down = { feature: 'down', verdict: 'works', detail: '' } as const;
  expect(withNewer([older, files], [down, newer])).toEqual([newer, files, down]);
});

test('what a table says is read again, and stays beside what is newer', () => {
  const old = {
    title: 'Old',
    kernel: '6.1',
    controlGroups: 'v2 alone',
    node: 'v18',
    findings: [
      { feature: 'fork', verdict: 'refused', detail: 'no CRIU | here' },
      { feature: 'files', verdict: 'fails', detail: '' },
    ],
  } satisfies Parameters<typeof tableOf>[0][number];
  const other = { ...old, title: 'Other', kernel: '6.12', findings: [{ ...old.findings[0]!, feature: 'down' }] };
  expect(reportsIn(`text\n\n${tableOf([old, other])}\ntext`)).toEqual([old, other]);
  const newer = { ...old, kernel: '6.13', findings: [{ ...old.findings[1]!, commit: 'abc' }] };
  const latest = { ...other, title: 'New' };
  expect(newestOf([old, other], [latest, newer])).toEqual([
    { ...newer, findings: [old.findings[0]!, newer.findings[0]!] },
    other,
    latest,
  ]);
  expect(reportsIn('')).toEqual([]);
});
