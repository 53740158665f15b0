import type { Bytes } from './bytes.ts';
import { AtollFailure, failureOf } from './failure.ts';
import { serverSentEvents } from './events.ts';
import { type Operations, type Streams, type Wire, wires } from './operations.ts';

/** How the platform is reached, and as whom. What is left out comes from the environment. */
export type AtollOptions = {
  /** Default: `ATOLL_URL`, then `E2B_API_URL`, then `http://localhost:3000`. */
  url?: string;
  /** Key of a team. Default, where no other credential is given: `ATOLL_API_KEY`, then `E2B_API_KEY`. */
  apiKey?: string;
  /** Access token of a user; with `teamId` for a team's operations. */
  accessToken?: string;
  /** Token of the installation's operator; with `teamId` for a team's operations. */
  adminToken?: string;
  teamId?: string;
  /** For one request and its answer, ms; not for streams. Default 60,000. */
  timeoutMs?: number;
  /** How often a request is asked again that certainly changed nothing, or that may be repeated. Default 2. */
  retries?: number;
  /** What asks. Default: the runtime's. */
  fetch?: typeof fetch;
};

/** What may be said for one request. */
export type RequestOptions = {
  signal?: AbortSignal;
  timeoutMs?: number;
  /** A token in place of the client's credential, e.g. a volume's for its content. */
  token?: string;
};

type Request = Record<string, unknown> & { body?: unknown };
type Answer<Name extends keyof Operations> = Name extends Streams
  ? AsyncGenerator<Operations[Name]['answer'], void>
  : Promise<Operations[Name]['answer']>;
/** Members are needed where any of the request is. */
type Arguments<R> =
  Record<never, never> extends R ? [request?: R, options?: RequestOptions] : [request: R, options?: RequestOptions];

/** Every operation of the platform's API as a method. A failure is an `AtollFailure`. */
export type Atoll = {
  readonly [Name in keyof Operations]: (...args: Arguments<Operations[Name]['request']>) => Answer<Name>;
};

const defaults = { url: 'http://localhost:3000', timeoutMs: 60_000, retries: 2 } as const;
/** Between a failed try and the next, ms, where the platform does not say. */
const retryDelayMs = 500;
/** No longer than this is waited because the platform says so, s. */
const retryAfterMaxSeconds = 30;

/** A client of a platform. */
export function atoll(options: AtollOptions = {}): Atoll {
  const caller = new Caller(options);
  const methods = Object.entries(wires).map(([name, wire]) => [
    name,
    (request: Request = {}, more: RequestOptions = {}) =>
      wire.answer === 'events' ? caller.follow(name, wire, request, more) : caller.ask(name, wire, request, more),
  ]);
  return Object.fromEntries(methods) as Atoll;
}

class Caller {
  readonly #url: string;
  readonly #credential: Record<string, string>;
  readonly #timeoutMs: number;
  readonly #retries: number;
  readonly #fetch: typeof fetch;

  constructor(options: AtollOptions) {
    const url = options.url ?? environment('ATOLL_URL') ?? environment('E2B_API_URL') ?? defaults.url;
    this.#url = url.replace(/\/+$/, '');
    this.#credential = credentialOf(options);
    this.#timeoutMs = options.timeoutMs ?? defaults.timeoutMs;
    this.#retries = options.retries ?? defaults.retries;
    this.#fetch = options.fetch ?? fetch;
  }

  async ask(name: string, wire: Wire, request: Request, options: RequestOptions): Promise<unknown> {
    const response = await this.#send(name, wire, request, options);
    try {
      switch (wire.answer) {
        case 'nothing':
          await response.body?.cancel();
          return undefined;
        case 'json':
          return await response.json();
        case 'text':
          return await response.text();
        default:
          return response.body ?? new Blob([]).stream();
      }
    } catch (cause) {
      throw new AtollFailure(name, `the answer was cut: ${String(cause)}`, { status: response.status, cause });
    }
  }

  /**
   * What a stream tells for as long as it is read, or until it says that it is over: where a connection ends, another
   * one goes on behind the last event, and a platform that starts anew is waited for.
   */
  async *follow(name: string, wire: Wire, request: Request, options: RequestOptions): AsyncGenerator<unknown, void> {
    let { after } = request;
    let wasConnected = false;
    while (!options.signal?.aborted) {
      try {
        const { body } = await this.#send(name, wire, { ...request, after }, options);
        wasConnected = true;
        for await (const { id, type, data } of serverSentEvents(body ?? new Blob([]).stream())) {
          if (id !== '') after = id;
          if (type === 'end') return;
          if (type !== 'ready') yield JSON.parse(data);
        }
      } catch (error) {
        if (options.signal?.aborted) return;
        if (error instanceof SyntaxError || (error instanceof AtollFailure && !(wasConnected && isAway(error))))
          throw error;
        await pause(retryDelayMs, options.signal);
      }
    }
  }

  async #send(name: string, wire: Wire, request: Request, options: RequestOptions): Promise<Response> {
    const again = mayBeRepeated(wire);
    // One key for all tries: the platform does the same once.
    const asked = wire.headers?.['idempotencyKey'] === undefined ? request : { idempotencyKey: newKey(), ...request };
    for (let left = this.#retries; ; left--) {
      try {
        return await this.#try(name, wire, asked, options);
      } catch (error) {
        if (!(error instanceof AtollFailure) || options.signal?.aborted || left <= 0) throw error;
        if (!bodyIsKept(request) || !(changedNothing(error) || (mayBeDone(error) && again))) throw error;
        const seconds = Math.min(error.retryAfterSeconds ?? retryDelayMs / 1000, retryAfterMaxSeconds);
        await pause(seconds * 1000, options.signal);
      }
    }
  }

  async #try(name: string, wire: Wire, request: Request, options: RequestOptions): Promise<Response> {
    const { signal, timeoutMs = this.#timeoutMs, token } = options;
    const limit = wire.answer === 'events' || wire.answer === 'bytes' ? [] : [AbortSignal.timeout(timeoutMs)];
    const signals = [...limit, ...(signal ? [signal] : [])];
    const credential = token === undefined ? this.#credential : { Authorization: `Bearer ${token}` };
    const init = {
      method: wire.method,
      headers: { ...credential, ...headersOf(wire, request) },
      ...bodyOf(wire, request.body),
      ...(signals.length > 0 && { signal: AbortSignal.any(signals) }),
      redirect: 'error' as const,
    };
    const response = await this.#fetch(`${this.#url}${targetOf(name, wire, request)}`, init).catch((cause: unknown) => {
      const timedOut = limit[0]?.aborted === true && !signal?.aborted;
      const reason = timedOut ? `no answer within ${timeoutMs} ms` : `no answer: ${String(cause)}`;
      throw new AtollFailure(name, reason, { status: 0, cause });
    });
    if (!response.ok) throw await failureOf(name, response);
    return response;
  }
}

function credentialOf({ apiKey, accessToken, adminToken, teamId }: AtollOptions): Record<string, string> {
  const isNamed = accessToken !== undefined || adminToken !== undefined;
  const key = apiKey ?? (isNamed ? undefined : (environment('ATOLL_API_KEY') ?? environment('E2B_API_KEY')));
  return {
    ...(key !== undefined && { 'X-API-Key': key }),
    ...(accessToken !== undefined && { Authorization: `Bearer ${accessToken}` }),
    ...(adminToken !== undefined && { 'X-Admin-Token': adminToken }),
    ...(teamId !== undefined && { 'X-Team-ID': teamId }),
  };
}

/** Where there is no environment, as in a browser, nothing is set. */
function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  const text = process?.env?.[name];
  return text === '' ? undefined : text;
}

/** The path and query of a request; a member that the path needs and that is not there is the caller's mistake. */
function targetOf(name: string, { path, query = [] }: Wire, request: Request): string {
  const target = path.replace(/\{(\w+)\}/g, (_, member: string) => {
    const value = request[member];
    if (typeof value !== 'string' || value === '' || value === '.' || value === '..')
      throw new TypeError(`${name}: ${member} must be a text that is not empty, "." or ".."`);
    return encodeURIComponent(value);
  });
  const params = new URLSearchParams();
  for (const member of query) {
    const value = request[member];
    if (value !== undefined) params.set(member, Array.isArray(value) ? value.join(',') : String(value));
  }
  return params.size === 0 ? target : `${target}?${params}`;
}

function headersOf({ headers = {}, body }: Wire, request: Request): Record<string, string> {
  const named = Object.entries(headers).filter(([member]) => request[member] !== undefined);
  return {
    ...(body === 'json' && request.body !== undefined && { 'Content-Type': 'application/json' }),
    ...Object.fromEntries(named.map(([member, header]) => [header, String(request[member])])),
  };
}

function bodyOf(wire: Wire, body: unknown): { body?: Bytes; duplex?: 'half' } {
  if (wire.body === undefined || body === undefined) return {};
  if (wire.body === 'json') return { body: JSON.stringify(body) };
  return { body: body as Bytes, ...(body instanceof ReadableStream && { duplex: 'half' as const }) };
}

/** Whether asking twice does what asking once does. */
const mayBeRepeated = ({ method, headers }: Wire): boolean =>
  (method !== 'POST' && method !== 'PATCH') || headers?.['idempotencyKey'] !== undefined;

/** What the platform answers where it has not begun. */
const changedNothing = ({ status }: AtollFailure): boolean => status === 429 || status === 503;

/** What is answered, or not answered, where nobody knows what became of it. */
const mayBeDone = ({ status, code }: AtollFailure): boolean =>
  status === 0 || code === 'api_connection_lost' || code === 'database_outcome_unknown';

/** It does not answer now, and may soon. */
const isAway = (failure: AtollFailure): boolean => failure.status === 0 || changedNothing(failure);

/** A stream is read once. */
const bodyIsKept = ({ body }: Request): boolean => !(body instanceof ReadableStream);

const newKey = (): string => crypto.randomUUID();

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
