import { writeSync } from 'node:fs';
import type { LayerJob } from './job.ts';
import { runLayerProgram } from './layer-program.ts';

/** The layer program's entry: one job as its argument, one line of JSON as its answer. */
const job = JSON.parse(process.argv[2] ?? '') as LayerJob;
const answer = await runLayerProgram(job, process.stdin as AsyncIterable<Uint8Array>);
writeSync(1, `${JSON.stringify(answer)}\n`);
process.exit(0);
