/** An entry of the audit log: who changed what. Times are microseconds since the epoch. */
export type AuditRecord = {
  entryId: string;
  atUs: number;
  operation: string;
  target: string;
  actorKind: 'apiKey' | 'user' | 'admin' | 'local' | 'none';
  actorId: string | null;
  teamId: string | null;
  address: string;
  status: number;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
};

/** What an operation says of its change beside what every request has. Never a secret. */
export type Change = {
  /** `kind:ID` of what was changed. */
  target?: string;
  before?: Record<string, unknown>;
  after?: Record<string, unknown>;
};
