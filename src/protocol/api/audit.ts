import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { dateTime, freeObject, int32, nullable, oneOf } from './primitives.ts';

/** One entry of the audit log (Atoll's own interface). */
export const AuditEntry = Type.Object(
  {
    id: Type.String(),
    timestamp: dateTime(),
    operation: Type.String({ description: 'operationId of the request, or `cli.…` for a command on the machine' }),
    target: Type.String({ description: 'What was changed, as kind:ID; empty when there is nothing to name' }),
    actor: Type.Object({ kind: oneOf(['apiKey', 'user', 'admin', 'local', 'none']), id: nullable(Type.String()) }),
    teamID: nullable(Type.String()),
    address: Type.String({ description: 'Where the request came from' }),
    status: int32({ description: 'How it was answered; 5xx may have changed something' }),
    before: nullable(freeObject()),
    after: nullable(freeObject()),
  },
  { $id: 'AuditEntry' },
);
/** An entry of the audit log. */
export type AuditEntry = Static<typeof AuditEntry>;
