import { mapperOf } from '../../record/column.ts';
import { sandboxColumns } from '../record.ts';

/** The columns of `sandboxes`, for queries that are kept. */
export const sandboxColumnNames = Object.values(sandboxColumns).map(({ name }) => name);

/** Between rows of `sandboxes` and records. */
export const { recordOf: sandboxOfRow, rowOf: rowOfSandbox, partOf: columnsOf } = mapperOf(sandboxColumns);
