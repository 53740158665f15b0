import { mapperOf } from '../../record/column.ts';
import { listedSandboxColumns, sandboxColumns, sandboxFactColumns } from '../record.ts';

/** The columns of `sandboxes`, for kept queries. */
export const sandboxColumnNames = Object.values(sandboxColumns).map(({ name }) => name);

/** Those of `SandboxFacts`. */
export const factColumnNames = Object.values(sandboxFactColumns).map(({ name }) => name);

/** Those of `ListedSandbox`. */
export const listedColumnNames = Object.values(listedSandboxColumns).map(({ name }) => name);

export const { recordOf: factsOfRow } = mapperOf(sandboxFactColumns);
export const { recordOf: listedOfRow } = mapperOf(listedSandboxColumns);

/** Translate between rows of `sandboxes` and records. */
export const { recordOf: sandboxOfRow, rowOf: rowOfSandbox, partOf: columnsOf } = mapperOf(sandboxColumns);
