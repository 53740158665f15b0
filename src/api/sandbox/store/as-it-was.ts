import type { Expression, ExpressionBuilder, SqlBool } from 'kysely';
import type { Tables } from '../../database/schema.ts';
import type { SandboxRecord } from '../record.ts';

/** The members that show that nobody else has worked on a row since it was read. */
export type AsItWas = Pick<SandboxRecord, 'sandboxId' | 'executionId' | 'state' | 'replicaId' | 'nextExecutionId'>;

/**
 * The row of a sandbox, as long as nobody has taken over the work on it since it was read. A process that stood still
 * for so long that others took over changes nothing any more.
 */
export function asItWas(sandbox: AsItWas): (where: ExpressionBuilder<Tables, 'sandboxes'>) => Expression<SqlBool> {
  const { sandboxId, executionId, state, replicaId, nextExecutionId } = sandbox;
  return where =>
    where.and([
      where('sandbox_id', '=', sandboxId),
      where('execution_id', '=', executionId),
      where('state', '=', state),
      where('replica_id', replicaId === null ? 'is' : '=', replicaId),
      where('next_execution_id', nextExecutionId === null ? 'is' : '=', nextExecutionId),
    ]);
}
