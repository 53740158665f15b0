import type { Static, TObject, TSchema } from '@sinclair/typebox';
import type { Change } from '../app/audit.ts';
import type { Caller } from '../app/authentication.ts';
import type { App } from '../app/context.ts';
import { bodyBytesMax } from './body.ts';
import type { Auth, CallerOf } from './authenticate.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** One kind of success. Header values are their descriptions. With `contentType`, the body is text and sent as it is. */
type ResponseSpec = { description: string; schema?: TSchema; /** Bytes, and no JSON. */ binary?: true; headers?: Record<string, string>; contentType?: string };
type Responses = { readonly [status: number]: ResponseSpec };

type ReplyHeaders = Record<string, string>;
type ReplyOf<R extends Responses> = {
  [S in keyof R & number]: R[S] extends { schema: infer T extends TSchema }
    ? { status: S; body: Static<T>; headers?: ReplyHeaders }
    : R[S] extends { binary: true }
    ? { status: S; stream: ReadableStream<Uint8Array>; headers?: ReplyHeaders }
    : { status: S; headers?: ReplyHeaders };
}[keyof R & number];

/** What a handler may answer, types erased. */
export type Reply = { status: number; body?: unknown; stream?: ReadableStream<Uint8Array>; headers?: ReplyHeaders };

export type Input<C extends Caller | null, P, Q, B> = {
  caller: C;
  /** Decoded once each. */
  params: P;
  query: Q;
  body: B;
  /** Scheme and host by which the client reaches the API, without a slash at the end. */
  origin: string;
  /** Empty when the client does not name itself. */
  userAgent: string;
  /** The body as it comes, for routes without a JSON one, and its announced length. */
  upload: { stream: ReadableStream<Uint8Array> | null; length: number | null };
  /** Aborted when the client goes away. */
  signal: AbortSignal;
  /** Says for the audit log what is being changed. The last word on each member counts. */
  note(change: Change): void;
};

type RouteSpec<A extends Auth, P extends TObject, Q extends TObject, B extends TSchema, R extends Responses, Out> = {
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
  /** The longest body, bytes, where the usual one is too short. */
  bodyBytesMax?: number;
  /** Refuse members of the body that the schema does not name. Default: for the operator's routes. Clients' are told to ignore them. */
  strict?: boolean;
  responses: R;
  /** Whether it changes anything, which the audit log then tells. Default: unless it is a GET. */
  changes?: boolean;
  /** Its answers, errors included, must be kept by nobody on the way. */
  noStore?: boolean;
  /** Statuses of errors beside those that follow from `auth`, `query` and `body`. */
  errors?: readonly number[];
  handle(app: App, input: Input<CallerOf[A], Static<P>, Static<Q>, Static<B>>): Promise<Out>;
};

/** One operation of the REST API: what validates its requests, what documents it, and what answers it. */
export type Route = {
  operationId: string;
  method: Method;
  path: string;
  summary: string;
  deprecated: boolean;
  auth: Auth;
  params: TObject | null;
  query: TObject | null;
  body: TSchema | null;
  bodyOptional: boolean;
  bodyBytesMax: number;
  strict: boolean;
  changes: boolean;
  noStore: boolean;
  responses: Responses;
  /** Every error status it may answer, ascending. */
  errors: readonly number[];
  handle(app: App, input: Input<Caller | null, unknown, unknown, unknown>): Promise<Reply>;
};

/** Defines an operation; its handler is typed by its schemas. */
export function route<
  A extends Auth,
  const R extends Responses,
  P extends TObject = TObject<Record<never, never>>,
  Q extends TObject = TObject<Record<never, never>>,
  B extends TSchema = TObject<Record<never, never>>,
  const Out extends ReplyOf<R> = ReplyOf<R>,
>(spec: RouteSpec<A, P, Q, B, R, Out>): Route {
  const implied = [
    ...(spec.auth === 'none' ? [] : [401, 403]),
    ...(spec.auth === 'team' || spec.auth === 'teamOrUser' || spec.auth === 'volume' ? [429] : []),
    ...(spec.query || spec.body ? [400] : []),
    ...(spec.body ? [413] : []),
    500,
  ];
  return {
    operationId: spec.operationId,
    method: spec.method,
    path: spec.path,
    summary: spec.summary,
    deprecated: spec.deprecated ?? false,
    auth: spec.auth,
    params: spec.params ?? null,
    query: spec.query ?? null,
    body: spec.body ?? null,
    bodyOptional: spec.bodyOptional ?? false,
    bodyBytesMax: spec.bodyBytesMax ?? bodyBytesMax.usual,
    strict: spec.strict ?? spec.auth === 'admin',
    changes: spec.changes ?? spec.method !== 'GET',
    noStore: spec.noStore ?? false,
    responses: spec.responses,
    errors: [...new Set([...implied, ...(spec.errors ?? [])])].toSorted((a, b) => a - b),
    // The server hands over only what the very same schemas accepted.
    handle: spec.handle as Route['handle'],
  };
}
