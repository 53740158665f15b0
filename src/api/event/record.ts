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

/** What a stream tells next: each item with the place behind which to go on after it. */
export type News<T> = {
  items: { place: number; item: T }[];
  /** There is more already. */
  isMore: boolean;
  /** How something stands now that has no place among the items: who reads on later is told how it stands then. */
  standing?: { event: string; data: unknown };
  /** Nothing will follow these items, and this is how it ended. */
  end?: object;
};

/** Something that is told as it happens, from `begin` on. */
export type StreamSource<T> = { begin: number; next(): Promise<News<T>> };
