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
 * One kind of success. Header values are their descriptions. With `contentType`, the body is text and sent as it is.
 */
type ResponseSpec = {
  description: string;
  schema?: TSchema;
  /** Bytes, and no JSON. */ binary?: true;
  headers?: Record<string, string>;
  contentType?: string;
  /** Content of each event; streams only. */
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

/** What a handler may answer, types erased. */
export type Reply = { status: number; body?: unknown; stream?: ReadableStream<Uint8Array>; headers?: ReplyHeaders };

/** What a handler is given of a request. */
type Input<C extends Caller | null, P, Q, B, H> = {
  caller: C;
  /** Decoded once each. */
  params: P;
  query: Q;
  body: B;
  headers: H;
  /** Scheme and host by which the client reaches the API, without a slash at the end. */
  origin: string;
  /** A browser says that a page of this very origin asks. */
  sameOrigin: boolean;
  /** The client's address. */
  address: string;
  /** Empty when the client does not name itself. */
  userAgent: string;
  /** The body as it comes, for routes without a JSON one, and its announced length. */
  upload: { stream: ReadableStream<Uint8Array> | null; length: number | null };
  /** Aborted when the client goes away. */
  signal: AbortSignal;
  /** Whether the caller would still be let in: an answer that goes on ends when a key or session is revoked. */
  isStillLetIn(): Promise<boolean>;
  /** Others had their turn in the middle of this one, for so long: none of that is counted as the caller's. */
  othersHad(ms: number): void;
  /** What is being changed, for the audit log. The last word on each member counts. */
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
  /** A JSON object. With `bodyOptional`, no body at all is the same as `{}`. */
  body?: B;
  bodyOptional?: boolean;
  /** The body is bytes that the handler reads as they come. */
  upload?: boolean;
  /** The longest body, bytes, where the usual one of all routes, or of those for strangers, is too short. */
  bodyBytesMax?: number;
  /** What a member of the team must be at least. Default: a viewer to read, a developer to change. */
  role?: Role;
  /** A session must have proven within the last minutes whose it is. */
  proof?: boolean;
  /**
   * Refuse members of the body that the schema does not name. Default: for the operator's routes. Clients' are told to
   * ignore them.
   */
  strict?: boolean;
  /** Headers that it reads, by their names in lower case. */
  headers?: H;
  responses: R;
  /** Whether it changes anything, which the audit log then has. Default: unless it is a GET. */
  changes?: boolean;
  /** Whether its answer waits until a loss of power takes nothing of it back. Default: where it changes anything. */
  durable?: boolean;
  /** Its answers, errors included, must be kept by nobody on the way. */
  noStore?: boolean;
  /**
   * It looks at rows of which a team may have thousands: teams take turns, and what it takes of the only thread counts.
   * Not for what waits for machines: there are few turns.
   */
  long?: boolean;
  /** Statuses of errors beside those that any route may answer, or follow from `auth` and from what it reads. */
  errors?: readonly number[];
  /** `uses`: what the operation works on, by the members that it names. */
  handle: (uses: Uses, input: Input<CallerOf[A], Static<P>, Static<Q>, Static<B>, Static<H>>) => Promise<Out>;
};

/**
 * One operation of the REST API: what validates its requests, what documents it, and what answers it with what it
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
    // While the platform starts, and where the database does not answer.
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
    // The server hands over only what the very same schemas accepted.
    handle: spec.handle as unknown as Route<Uses>['handle'],
  };
}
