import { expect, test } from 'bun:test';
import { tableOf } from './report.ts';

test('hosts are columns and features are rows, also where a host was not asked for one', () => {
  const about = { controlGroups: 'v2 alone', node: 'v18' };
  const table = tableOf([
    { ...about, title: 'Old', kernel: '6.1', findings: [{ feature: 'fork', verdict: 'refused', detail: 'no\nCRIU | here' }] },
    { ...about, title: 'New', kernel: '6.12', findings: [{ feature: 'fork', verdict: 'works', detail: '' }, { feature: 'files', verdict: 'fails', detail: 'x'.repeat(500) }] },
  ]);
  const lines = table.trim().split('\n');
  expect(lines).toContain('| kernel | 6.1 | 6.12 |');
  expect(lines).toContain('| fork | refused: no CRIU \\| here | works |');
  expect(lines.find(line => line.startsWith('| files'))).toMatch(/^\| files \| – \| \*\*fails\*\*: x{100,200} \|$/);
});
