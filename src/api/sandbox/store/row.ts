import { mapperOf } from '../../record/column.ts';
import { sandboxColumns } from '../record.ts';

/** Between rows of `sandboxes` and records. */
export const { recordOf: sandboxOfRow, rowOf: rowOfSandbox, partOf: columnsOf } = mapperOf(sandboxColumns);
