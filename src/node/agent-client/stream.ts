import { AtollError, messageOf } from '../../base/error.ts';
import { type Field, headBytes } from '../../http1/head-bytes.ts';
import { type AgentOutcome, createResponseReader, type TakeData } from './response.ts';

/** Bytes read from what has come before the reader may pause. */
const pieceBytes = 16 << 10;

/** A request to an agent. `Host` and the length of the body are added. */
export type AgentRequest = {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly fields: readonly Field[];
  readonly body?: Uint8Array;
};

/** The connection of a request. */
export type AgentConnection = {
  /** Stops reading: what the agent says waits in this connection, and then in the agent. */
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
  /** See `TakeData`. What it throws ends the request, and is the request's error. */
  readonly onData: TakeData;
  /** Called with the number of bytes that are about to be read: bytes that came together are read some at a time. */
  onBytes?(count: number, connection: AgentConnection): void;
  /** The same after they were read. If it pauses, the bytes behind them are not read either. */
  afterBytes?(count: number, connection: AgentConnection): void;
  /** Ends the request when it aborts; its reason is the request's error. */
  readonly signal?: AbortSignal;
  /** For the whole request, in milliseconds. Without it there is no limit. */
  readonly timeoutMs?: number;
};

/**
 * Sends a request to an agent on the connected socket `fd`, which is closed in the end, and reads the response
 * strictly: whoever is root in a sandbox can take the agent's place, so the only thing trusted about it is that it is
 * the sandbox's answer. Errors of `ended`: `internal` for what is not a response, `unavailable` if the connection
 * fails, `deadline_exceeded`, the signal's reason.
 */
export async function openStream(fd: number, request: AgentRequest, options: StreamOptions): Promise<AgentStream> {
  const { promise, resolve, reject } = Promise.withResolvers<AgentOutcome>();
  promise.catch(() => {}); // callers may wait for it only later
  const response = createResponseReader(options.onData);
  let unsent = bytesOf(request);
  const send = (socket: Bun.Socket) => {
    unsent = unsent.subarray(Math.max(socket.write(unsent), 0));
  };
  const input = new Input((bytes, connection) => {
    try {
      options.onBytes?.(bytes.length, connection);
      if (response.take(bytes)) {
        resolve(response.outcome(true));
        input.drop();
      }
      options.afterBytes?.(bytes.length, connection);
    } catch (error) {
      reject(error);
      input.drop();
    }
  });
  const handlers = {
    open: send,
    drain: send,
    data: (socket: Bun.Socket, bytes: Buffer) => input.take(bytes, socket),
    close: () => input.whenRead(() => resolve(response.outcome(false))),
    error: (_: Bun.Socket, error: Error) =>
      reject(new AtollError('unavailable', `the agent can't be reached: ${messageOf(error)}`, { cause: error })),
  };
  // The runtime accepts a connected descriptor, but its types know only an address.
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
    input.drop();
    socket.terminate();
  });
  ended.catch(() => {});
  return { ended, ...input.connectionOn(socket) };
}

/** The bytes that come on a connection, read piece by piece. Whoever is root in a sandbox decides how many come. */
class Input {
  readonly #read: (bytes: Buffer, connection: AgentConnection) => void;
  #waiting: Buffer[] = [];
  #isHeld = false;
  #isOver = false;
  #onRead: (() => void) | undefined;

  constructor(read: (bytes: Buffer, connection: AgentConnection) => void) {
    this.#read = read;
  }

  take(bytes: Buffer, socket: Bun.Socket): void {
    this.#waiting.push(bytes);
    this.#readSome(this.connectionOn(socket));
  }

  /** Nothing more comes: calls back when all is read. */
  whenRead(onRead: () => void): void {
    this.#onRead = onRead;
    if (this.#waiting.length === 0) onRead();
  }

  /** Drops what was not read. */
  drop(): void {
    this.#isOver = true;
    this.#waiting = [];
  }

  connectionOn(socket: Bun.Socket): AgentConnection {
    return {
      pause: () => {
        this.#isHeld = true;
        socket.pause();
      },
      resume: () => {
        this.#isHeld = false;
        this.#readSome(this.connectionOn(socket));
        if (!this.#isHeld) socket.resume();
      },
      close: () => void socket.terminate(),
    };
  }

  #readSome(connection: AgentConnection): void {
    for (let first; !this.#isHeld && !this.#isOver && (first = this.#waiting[0]) !== undefined;) {
      if (first.length > pieceBytes) this.#waiting[0] = first.subarray(pieceBytes);
      else this.#waiting.shift();
      this.#read(first.subarray(0, pieceBytes), connection);
    }
    if (this.#waiting.length === 0) this.#onRead?.();
  }
}

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
