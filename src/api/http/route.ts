import type { Static, TObject, TSchema } from '@sinclair/typebox';
import { bodyBytesMax } from './body.ts';
import type { JsonText } from '../../base/json-text.ts';
import type { Role } from '../../protocol/api/member.ts';
import type { Auth, CallerOf } from './auth.ts';
import type { Change } from '../event/record.ts';
import type { Caller } from '../credential/caller.ts';

/** The methods that routes have. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * One kind of success. Header values are their descriptions. With `contentType`, the body is text and sent unchanged.
 */
type ResponseSpec = {
  description: string;
  schema?: TSchema;
  /** The body is bytes instead of JSON. */ binary?: true;
  headers?: Record<string, string>;
  contentType?: string;
  /** Content of each event; for streams only. */
  item?: TSchema;
};
type Responses = { readonly [status: number]: ResponseSpec };

type ReplyHeaders = Record<string, string>;
type ReplyOf<R extends Responses> = {
  [S in keyof R & number]: R[S] extends { schema: infer T extends TSchema }
    ? { status: S; body: Static<T> | JsonText<Static<T>>; headers?: ReplyHeaders }
    : R[S] extends { binary: true }
      ? { status: S; stream: ReadableStream<Uint8Array>; headers?: ReplyHeaders }
      : { status: S; headers?: ReplyHeaders };
}[keyof R & number];

/** What a handler may answer, with types erased. */
export type Reply = { status: number; body?: unknown; stream?: ReadableStream<Uint8Array>; headers?: ReplyHeaders };

/** The parts of a request that a handler gets. */
type Input<C extends Caller | null, P, Q, B, H> = {
  caller: C;
  /** Decoded once each. */
  params: P;
  query: Q;
  body: B;
  headers: H;
  /** Scheme and host by which the client reaches the API, without a trailing slash. */
  origin: string;
  /** The browser says that a page of this very origin sent it. */
  sameOrigin: boolean;
  /** The client's address. */
  address: string;
  /** Empty when the client does not name itself. */
  userAgent: string;
  /** The body as a stream, for routes without a JSON body, and its announced length. */
  upload: { stream: ReadableStream<Uint8Array> | null; length: number | null };
  /** Aborted when the client goes away. */
  signal: AbortSignal;
  /** Whether the caller would still be admitted: a continuing answer ends when a key or session is revoked. */
  isStillLetIn(): Promise<boolean>;
  /** Reports time in the middle of this request that went to others: it is not charged to the caller. */
  othersHad(ms: number): void;
  /** What is being changed, for the audit log. The last value of each member counts. */
  audit(change: Change): void;
};

type RouteSpec<
  Uses,
  A extends Auth,
  P extends TObject,
  Q extends TObject,
  B extends TSchema,
  R extends Responses,
  H extends TObject,
  Out,
> = {
  operationId: string;
  method: Method;
  /** With `{name}` for each parameter. */
  path: string;
  summary: string;
  deprecated?: boolean;
  auth: A;
  params?: P;
  query?: Q;
  /** A JSON object. With `bodyOptional`, a missing body equals `{}`. */
  body?: B;
  bodyOptional?: boolean;
  /** The body is bytes that the handler reads as they arrive. */
  upload?: boolean;
  /** The longest body, bytes, where the usual limit, for all routes or for strangers, is too short. */
  bodyBytesMax?: number;
  /** The least role that a member of the team needs. Default: a viewer to read, a developer to change. */
  role?: Role;
  /** A session must have proven whose it is within the last minutes. */
  proof?: boolean;
  /**
   * Refuse members of the body that the schema does not name. Default: only for the operator's routes; clients of the
   * others are told that unknown members are ignored.
   */
  strict?: boolean;
  /** Headers that it reads, by their names in lower case. */
  headers?: H;
  responses: R;
  /** Whether it changes anything; then the audit log records it. Default: unless it is a GET. */
  changes?: boolean;
  /** Whether its answer waits until a loss of power can't undo it. Default: where it changes anything. */
  durable?: boolean;
  /** Nobody on the way may keep its answers, errors included. */
  noStore?: boolean;
  /**
   * It reads rows of which a team may have thousands: teams take turns, and its time on the only thread counts. Not for
   * operations that wait for machines, as there are few turns.
   */
  long?: boolean;
  /**
   * Statuses of errors in addition to those that any route may answer, or that follow from `auth` and from what it
   * reads.
   */
  errors?: readonly number[];
  /** `uses`: the parts that the operation works with, those members that it names. */
  handle: (uses: Uses, input: Input<CallerOf[A], Static<P>, Static<Q>, Static<B>, Static<H>>) => Promise<Out>;
};

/**
 * One operation of the REST API: what validates its requests, documents it, and answers it with the parts that it
 * `Uses`.
 */
export type Route<Uses = never> = {
  operationId: string;
  method: Method;
  path: string;
  summary: string;
  deprecated: boolean;
  auth: Auth;
  role: Role;
  proof: boolean;
  params: TObject | null;
  query: TObject | null;
  body: TSchema | null;
  bodyOptional: boolean;
  upload: boolean;
  bodyBytesMax: number;
  strict: boolean;
  changes: boolean;
  durable: boolean;
  noStore: boolean;
  long: boolean;
  headers: TObject | null;
  responses: Responses;
  /** Every error status it may answer, ascending. */
  errors: readonly number[];
  handle: (uses: Uses, input: Input<Caller | null, unknown, unknown, unknown, unknown>) => Promise<Reply>;
};

/** Defines an operation; its handler is typed by its schemas. */
export function route<
  A extends Auth,
  const R extends Responses,
  Uses = unknown,
  P extends TObject = TObject<Record<never, never>>,
  Q extends TObject = TObject<Record<never, never>>,
  B extends TSchema = TObject<Record<never, never>>,
  H extends TObject = TObject<Record<never, never>>,
  const Out extends ReplyOf<R> = ReplyOf<R>,
>(spec: RouteSpec<Uses, A, P, Q, B, R, H, Out>): Route<Uses> {
  const implied = [
    ...(spec.auth === 'none' ? [] : [401, 403, 429]),
    ...(spec.params || spec.query || spec.body || spec.headers ? [400] : []),
    ...(spec.body ? [413] : []),
    500,
    // While the platform starts, and when the database does not answer.
    503,
  ];
  const changes = spec.changes ?? spec.method !== 'GET';
  return {
    operationId: spec.operationId,
    method: spec.method,
    path: spec.path,
    summary: spec.summary,
    deprecated: spec.deprecated ?? false,
    auth: spec.auth,
    role: spec.role ?? (changes ? 'developer' : 'viewer'),
    proof: spec.proof ?? false,
    params: spec.params ?? null,
    query: spec.query ?? null,
    body: spec.body ?? null,
    bodyOptional: spec.bodyOptional ?? false,
    upload: spec.upload ?? false,
    bodyBytesMax: spec.bodyBytesMax ?? (spec.auth === 'none' ? bodyBytesMax.strangers : bodyBytesMax.usual),
    strict: spec.strict ?? spec.auth === 'admin',
    changes,
    durable: spec.durable ?? changes,
    noStore: spec.noStore ?? false,
    long: spec.long ?? false,
    headers: spec.headers ?? null,
    responses: spec.responses,
    errors: [...new Set([...implied, ...(spec.errors ?? [])])].toSorted((a, b) => a - b),
    // The server passes on only what the same schemas have accepted.
    handle: spec.handle as unknown as Route<Uses>['handle'],
  };
}
