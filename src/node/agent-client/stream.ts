import { AtollError, messageOf } from '../../base/error.ts';
import { type Field, headBytes } from '../../http1/head-bytes.ts';
import { type AgentOutcome, createResponseReader, type TakeData } from './response.ts';

/** A request to an agent. `Host` and the length of the body are added. */
export type AgentRequest = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly fields: readonly Field[];
  readonly body?: Uint8Array;
};

/** The connection of a request. */
export type AgentConnection = {
  /** Stops reading: what the agent says waits in the connection, and then in the agent. */
  pause(): void;
  resume(): void;
  /** Ends the connection, as if the agent had done so. */
  close(): void;
};

/** A request that is under way, on a connection of its own. */
export type AgentStream = AgentConnection & {
  /** Settles once, when the response or its connection has ended. Errors: see `openStream`. */
  readonly ended: Promise<AgentOutcome>;
};

/** How a request is carried out. */
type StreamOptions = {
  /** See there. What it throws ends the request, and is its error. */
  readonly onData: TakeData;
  /** Hears how many bytes came on the connection, before any of them is read. */
  onBytes?(count: number, connection: AgentConnection): void;
  /** The same when they were read. */
  afterBytes?(count: number, connection: AgentConnection): void;
  /** Ends the request when it aborts; its reason is the request's error. */
  readonly signal?: AbortSignal;
  /** For the whole request, in milliseconds. None without. */
  readonly timeoutMs?: number;
};

/**
 * Sends a request to an agent on the connected socket `fd`, which is closed in the end, and reads the response
 * strictly: whoever is root in a sandbox can take the agent's place, and nothing about it is trusted but to be the
 * sandbox's answer. Errors of `ended`: `internal` for what is no response, `unavailable` where the connection fails,
 * `deadline_exceeded`, the signal's reason.
 */
export async function openStream(fd: number, request: AgentRequest, options: StreamOptions): Promise<AgentStream> {
  const { promise, resolve, reject } = Promise.withResolvers<AgentOutcome>();
  promise.catch(() => {}); // who waits for it may come later
  const response = createResponseReader(options.onData);
  let unsent = bytesOf(request);
  const send = (socket: Bun.Socket) => {
    unsent = unsent.subarray(Math.max(socket.write(unsent), 0));
  };
  const handlers = {
    open: send,
    drain: send,
    data(socket: Bun.Socket, bytes: Buffer) {
      try {
        options.onBytes?.(bytes.length, connectionOf(socket));
        if (response.take(bytes)) resolve(response.outcome(true));
        options.afterBytes?.(bytes.length, connectionOf(socket));
      } catch (error) {
        reject(error);
      }
    },
    close: () => resolve(response.outcome(false)),
    error: (_: Bun.Socket, error: Error) =>
      reject(new AtollError('unavailable', `the agent can't be reached: ${messageOf(error)}`, { cause: error })),
  };
  // The runtime takes a connected descriptor where the types know only an address.
  const socket = await Bun.connect({ fd, socket: handlers } as unknown as Bun.UnixSocketOptions<undefined>);
  const { signal, timeoutMs } = options;
  const onAbort = () => reject(signal?.reason);
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  const late = () => reject(new AtollError('deadline_exceeded', 'the agent did not answer in time'));
  const timer = timeoutMs === undefined ? undefined : setTimeout(late, timeoutMs);
  const ended = promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
    socket.terminate();
  });
  ended.catch(() => {});
  return { ended, ...connectionOf(socket) };
}

const connectionOf = (socket: Bun.Socket): AgentConnection => ({
  pause: () => void socket.pause(),
  resume: () => void socket.resume(),
  close: () => void socket.terminate(),
});

/** Carries out a request to its end. */
export async function requestOnce(fd: number, request: AgentRequest, options: StreamOptions): Promise<AgentOutcome> {
  const { ended } = await openStream(fd, request, options);
  return await ended;
}

function bytesOf({ method, path, fields, body }: AgentRequest): Uint8Array {
  const length = body === undefined ? [] : [{ name: 'Content-Length', value: String(body.length) }];
  const head = headBytes(`${method} ${path} HTTP/1.1`, [{ name: 'Host', value: 'agent' }, ...length, ...fields]);
  return body === undefined ? head : Buffer.concat([head, body]);
}
