import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Figure, figuresTable, machineFacts } from '../platform/report.ts';
import { realFigures } from './real.ts';
import { scaleFigures } from './scale.ts';

// Compares a cluster with a single machine: `bun bench/cluster/run.ts [scale|real] [--quick]`. `npm run bench` runs all
// of it. Each part that was measured in full is written to its own page of docs/performance.
const output = join(import.meta.dir, '../../docs/performance');
const quick = process.argv.includes('--quick');
const share = quick ? 0.2 : 1;
const say = (text: string) => void process.stderr.write(`${text}\n`);

const parts: Record<string, () => Promise<Figure[]>> = {
  real: () => realFigures({ creates: 100 * share, requests: 500 * share, moves: 5 }, say),
  scale: () => scaleFigures({ machines: 1000, sandboxes: 100_000, creates: 400 * share, seconds: 30 * share }, say),
};
const named = Object.keys(parts).filter(name => process.argv.includes(name));
for (const name of named.length > 0 ? named : Object.keys(parts)) {
  const figures = (await parts[name]?.()) ?? [];
  const date = new Date().toISOString().slice(0, 10);
  const report = `Measured ${date} on ${machineFacts()}${quick ? ', with `--quick`' : ''}.\n\n${figuresTable(figures)}\n`;
  process.stdout.write(report);
  if (!quick) writeFileSync(join(output, `cluster-${name}.md`), report);
}
