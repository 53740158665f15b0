import { BodyReader } from './body-reader.ts';
import { incomplete } from './fields.ts';
import { headMayBeWhole } from './head-end.ts';
import type { Field } from './head-bytes.ts';
import { JoinedBytes } from './joined-bytes.ts';
import { ResponseHead } from './response-head.ts';
import { Trailers } from './trailers.ts';

/** Hears of one response, piece by piece. Heads and bytes are valid only during the call. */
type ResponseListener = {
  /** An interim response (1xx) came. */
  interim?(head: ResponseHead): void;
  /** The head of the final response came. */
  head(head: ResponseHead, hasBody: boolean): void;
  /** A piece of the body came, without its transfer coding. */
  data(bytes: Uint8Array): void;
  /** The trailers, if there are any and somebody listens. */
  trailers?(fields: readonly Field[]): void;
  /** The response is over. Not called for a malformed response. */
  end?(): void;
};

/** Limits beyond which a response counts as malformed. */
export type ResponseLimits = {
  /** Octets of one head. */
  readonly headBytesMax: number;
  /** Header lines of one head. */
  readonly fieldsMax: number;
  /** Interim responses before the final one. */
  readonly interimsMax: number;
};

/**
 * What the request was: a HEAD, whose response has no body; a request to switch protocols, which a 101 grants; or any
 * other.
 */
type Asked = 'head' | 'upgrade' | 'content';

type State =
  /** A head is being read; `partial` is what has come of it. */
  | { readonly kind: 'head'; readonly partial: Buffer | null; readonly interims: number }
  | { readonly kind: 'body' }
  | { readonly kind: 'over' };

/** Reads one response as its bytes come. However small the pieces are, it looks at no byte more than a few times. */
export class ResponseReader {
  readonly #listener: ResponseListener;
  readonly #limits: ResponseLimits;
  readonly #asked: Asked;
  readonly #trailers: Trailers;
  readonly #head: ResponseHead;
  readonly #body: BodyReader;
  readonly #joined = new JoinedBytes();
  #state: State = { kind: 'head', partial: null, interims: 0 };

  /** `asked`: what the request was; by default one whose response has a body. */
  constructor(listener: ResponseListener, limits: ResponseLimits, asked: Asked = 'content') {
    this.#listener = listener;
    this.#limits = limits;
    this.#asked = asked;
    this.#head = new ResponseHead(limits.fieldsMax);
    this.#trailers = new Trailers(limits.fieldsMax);
    this.#body = new BodyReader(
      (bytes, start, end) => {
        if (start < end) listener.data(bytes.subarray(start, end));
      },
      listener.trailers && ((bytes, start, end) => this.#trailers.take(bytes, start, end)),
    );
  }

  /** Whether the whole response was read, or turned out to be malformed. */
  get over(): boolean {
    return this.#state.kind === 'over';
  }

  /**
   * Takes the next bytes. Skips bytes after the response. Answers why the response is malformed; nothing may be read
   * after that.
   */
  read(bytes: Buffer): string | undefined {
    const state = this.#state;
    if (state.kind === 'over') return undefined;
    if (state.kind === 'body') return this.#readBody(bytes, 0);
    const { partial, interims } = state;
    if (partial === null) return this.#readHeads(bytes, 0, interims);
    return this.#readHeads(this.#joined.join(partial, bytes), partial.length, interims);
  }

  /**
   * The connection has ended in order. True: the response is whole, because it ended before or because it ends with its
   * connection.
   */
  close(): boolean {
    if (this.#state.kind === 'body' && this.#body.kind === 'close') this.#end();
    return this.#state.kind === 'over';
  }

  /**
   * `searched`: this many bytes of the input hold no whole head and belong to this reader; the caller may reuse the
   * input's other bytes.
   */
  #readHeads(input: Buffer, searched: number, interimsBefore: number): string | undefined {
    const { headBytesMax, interimsMax } = this.#limits;
    let interims = interimsBefore;
    for (let at = 0; at < input.length;) {
      const mayBeWhole = headMayBeWhole(input, Math.max(at, searched));
      const end = mayBeWhole ? this.#head.parse(input, at, input.length) : incomplete;
      if (end === incomplete && input.length - at <= headBytesMax) {
        const rest = input.subarray(at);
        return this.#wait(searched > 0 ? rest : Buffer.from(rest), interims);
      }
      if (end === incomplete || end - at > headBytesMax) return this.#fail('its head is too long');
      if (end < incomplete) return this.#fail(this.#head.fault);
      if (this.#head.status >= 200) return this.#begin(input, end);
      if (this.#head.status === 101 && this.#asked === 'upgrade') return this.#switch(input, end);
      if (++interims > interimsMax) return this.#fail('there were too many interim responses');
      this.#listener.interim?.(this.#head);
      at = end;
    }
    return this.#wait(null, interims);
  }

  #begin(input: Buffer, bodyStart: number): string | undefined {
    const framing = this.#head.framing(this.#asked === 'head');
    if (framing === undefined) return this.#fail('where its body ends is ambiguous');
    this.#state = { kind: 'body' };
    this.#body.reset(framing.kind, framing.length);
    this.#joined.forget();
    this.#listener.head(this.#head, !this.#body.done);
    return this.#readBody(input, bodyStart);
  }

  /** What follows belongs to the other protocol, until the connection ends. */
  #switch(input: Buffer, start: number): string | undefined {
    this.#state = { kind: 'body' };
    this.#body.reset('close', 0);
    this.#joined.forget();
    this.#listener.head(this.#head, true);
    return this.#readBody(input, start);
  }

  #readBody(bytes: Buffer, start: number): string | undefined {
    if (this.#body.take(bytes, start, bytes.length) < 0) return this.#fail('a chunk of its body is malformed');
    return this.#body.done ? this.#endBody() : undefined;
  }

  #endBody(): string | undefined {
    if (this.#listener.trailers && this.#body.hadTrailers) {
      const trailers = this.#trailers.read();
      if (trailers === undefined) return this.#fail('there are too many fields behind its body');
      this.#listener.trailers(trailers);
    }
    this.#end();
    return undefined;
  }

  #wait(partial: Buffer | null, interims: number): undefined {
    this.#state = { kind: 'head', partial, interims };
  }

  #fail(fault: string): string {
    this.#state = { kind: 'over' };
    return fault;
  }

  #end(): void {
    if (this.#state.kind === 'over') return;
    this.#state = { kind: 'over' };
    this.#listener.end?.();
  }
}
