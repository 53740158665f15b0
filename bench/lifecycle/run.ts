import { figuresTable, machineFacts } from '../platform/report.ts';
import { lifecycleFigures } from './lifecycle.ts';

// Measures only pause, resume, fork and snapshot: `bun bench/lifecycle/run.ts [--quick]`. `npm run bench` includes it.
const quick = process.argv.includes('--quick');
const figures = await lifecycleFigures(
  count => (quick ? Math.ceil(count / 10) : count),
  text => process.stderr.write(`${text}\n`),
);
process.stdout.write(`Measured on ${machineFacts()}.\n\n${figuresTable(figures)}\n`);
