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

/** What an operation adds to its audit entry, besides what every request has. Never a secret. */
export type Change = {
  /** `kind:ID` of what was changed. */
  target?: string;
  before?: Record<string, unknown>;
  after?: Record<string, unknown>;
};

/** What a stream sends next: each item with its place, from which a reader can continue. */
export type News<T> = {
  items: { place: number; item: T }[];
  /** More items are there already. */
  isMore: boolean;
  /**
   * The present state of something that has no place among the items: a reader that continues later gets the state of
   * that time.
   */
  standing?: { event: string; data: unknown };
  /** Nothing follows these items, and this is how it ended. */
  end?: object;
};

/** Something that is reported as it happens, from `begin` on. */
export type StreamSource<T> = { begin: number; next(): Promise<News<T>> };
