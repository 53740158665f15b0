/** An error as the Connect protocol carries it. */
export type RpcError = { code: string; message: string };

export type Headers = Record<string, string>;

/** Where calls go: the agent's address. */
export type Target = { readonly url: string };

type UnaryAnswer = { status: number; body: Record<string, unknown> & Partial<RpcError> };

/** One message for one message. `method` is e.g. `process.Process/List`. */
export async function unary(
  target: Target,
  method: string,
  message: unknown,
  headers: Headers = {},
): Promise<UnaryAnswer> {
  const response = await fetch(`${target.url}/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'connect-protocol-version': '1', ...headers },
    body: JSON.stringify(message),
  });
  return { status: response.status, body: (await response.json()) as UnaryAnswer['body'] };
}

/** The error of a call that must fail. */
export async function unaryError(
  target: Target,
  method: string,
  message: unknown,
  headers: Headers = {},
): Promise<string> {
  const { status, body } = await unary(target, method, message, headers);
  if (status === 200) throw new Error(`${method} succeeded: ${JSON.stringify(body)}`);
  return `${status} ${body.code}`;
}

/** A stream as it arrives. It reads no further than it is asked to. */
export type RpcStream<Message> = AsyncDisposable & {
  status: number;
  /** The next message; undefined after the end of the stream. Throws if the connection broke before the end. */
  next(): Promise<Message | undefined>;
  /** The error in the end envelope; undefined: none. Only after the end. */
  readonly error: RpcError | undefined;
  /** Breaks the connection off. */
  abort(): void;
};

export async function stream<Message>(
  target: Target,
  method: string,
  message: unknown,
  headers: Headers = {},
): Promise<RpcStream<Message>> {
  const abort = new AbortController();
  const response = await fetch(`${target.url}/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/connect+json', ...headers },
    body: envelope(message),
    signal: abort.signal,
  });
  const reader = response.body?.getReader();
  const parser = new EnvelopeParser();
  const read: RpcStream<Message> = {
    status: response.status,
    error: undefined,
    async next() {
      for (;;) {
        const found = parser.take();
        if (found?.isEnd) {
          Object.assign(read, { error: found.message['error'] });
          return undefined;
        }
        if (found) return found.message as Message;
        const { value, done } = (await reader?.read()) ?? { value: undefined, done: true };
        if (done || !value) throw new Error('the stream broke off');
        parser.add(value);
      }
    },
    abort: () => abort.abort(),
    async [Symbol.asyncDispose]() {
      abort.abort();
      await reader?.cancel().catch(() => {});
    },
  };
  return read;
}

export function envelope(message: unknown, flags = 0): Uint8Array<ArrayBuffer> {
  const payload = Buffer.from(JSON.stringify(message));
  const bytes = Buffer.alloc(5 + payload.length);
  bytes[0] = flags;
  bytes.writeUInt32BE(payload.length, 1);
  payload.copy(bytes, 5);
  return bytes;
}

/** Envelopes out of chunks. */
class EnvelopeParser {
  #chunks: Uint8Array[] = [];
  #length = 0;

  add(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }

  take(): { isEnd: boolean; message: Record<string, unknown> } | undefined {
    if (this.#length < 5) return undefined;
    let all = this.#joined();
    const size = all.readUInt32BE(1);
    if (all.length < 5 + size) return undefined;
    const message = JSON.parse(all.toString('utf8', 5, 5 + size)) as Record<string, unknown>;
    const isEnd = ((all[0] ?? 0) & 2) !== 0;
    all = all.subarray(5 + size);
    this.#chunks = [all];
    this.#length = all.length;
    return { isEnd, message };
  }

  #joined(): Buffer {
    const [first] = this.#chunks;
    if (this.#chunks.length === 1 && first) return Buffer.from(first.buffer, first.byteOffset, first.byteLength);
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    return all;
  }
}
