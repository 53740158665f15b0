import { figuresTable, machineFacts } from '../platform/report.ts';
import { lifecycleFigures } from './lifecycle.ts';

// Measures pause, resume, fork and snapshot alone: `bun bench/lifecycle/run.ts [--quick]`. `npm run bench` has it too.
const quick = process.argv.includes('--quick');
const figures = await lifecycleFigures(
  count => (quick ? Math.ceil(count / 10) : count),
  text => process.stderr.write(`${text}\n`),
);
process.stdout.write(`Measured on ${machineFacts()}.\n\n${figuresTable(figures)}\n`);
