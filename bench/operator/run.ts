/**
 * `bun bench/operator/run.ts`: store and API on both databases. OPERATOR_SANDBOXES and OPERATOR_SECONDS set the amount.
 */
import { figuresTable } from '../platform/report.ts';
import { operatorFigures } from './operator.ts';
import { sizesOf } from './sizes.ts';

process.stdout.write(`${figuresTable(await operatorFigures(sizesOf(process.env)))}\n`);
