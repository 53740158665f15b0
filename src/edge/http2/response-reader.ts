import type { OutgoingHttpHeaders } from 'node:http2';
import { BodyReader } from '../http/body-reader.ts';
import { incomplete } from '../http/fields.ts';
import { ResponseHead } from '../http/response-head.ts';

/** What a response comes to, piece by piece. */
export type ResponseListener = {
  interim(headers: OutgoingHttpHeaders): void;
  head(headers: OutgoingHttpHeaders, hasBody: boolean): void;
  /** A piece of the body; valid only during the call. */
  data(bytes: Uint8Array): void;
  end(): void;
};

const ofConnection = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']);

/** Reads one response out of the HTTP/1.1 bytes that the edge sends to a client: its own, so they are well-formed. */
export class ResponseReader {
  readonly #listener: ResponseListener;
  readonly #head: ResponseHead;
  readonly #toHead: boolean;
  readonly #body: BodyReader;
  #partial: Buffer | null = null;
  #began = false;
  ended = false;

  constructor(listener: ResponseListener, fieldsMax: number, toHead: boolean) {
    this.#listener = listener;
    this.#head = new ResponseHead(fieldsMax);
    this.#toHead = toHead;
    this.#body = new BodyReader((bytes, start, end) => listener.data(bytes.subarray(start, end)));
  }

  /** Takes the next bytes. */
  read(bytes: Buffer): void {
    if (this.ended) return;
    if (this.#began) return this.#readBody(bytes, 0);
    const input = this.#partial === null ? bytes : Buffer.concat([this.#partial, bytes]);
    this.#partial = null;
    for (let at = 0; at < input.length; ) {
      const end = this.#head.parse(input, at, input.length);
      if (end <= incomplete) {
        this.#partial = Buffer.from(input.subarray(at));
        return;
      }
      at = end;
      if (this.#head.status < 200) this.#listener.interim(headersOf(this.#head));
      else return this.#begin(input, end);
    }
  }

  /** The connection would be closed in order: the end of a body that has no other. */
  close(): void {
    if (this.#began && this.#body.kind === 'close') this.#end();
  }

  #begin(input: Buffer, bodyStart: number): void {
    const framing = this.#head.framing(this.#toHead);
    this.#began = true;
    this.#body.reset(framing?.kind ?? 'close', framing?.length ?? 0);
    this.#listener.head(headersOf(this.#head), !this.#body.done);
    this.#readBody(input, bodyStart);
  }

  #readBody(bytes: Buffer, start: number): void {
    this.#body.take(bytes, start, bytes.length);
    if (this.#body.done) this.#end();
  }

  #end(): void {
    if (this.ended) return;
    this.ended = true;
    this.#listener.end();
  }
}

function headersOf({ fields, status }: ResponseHead): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = { ':status': status };
  for (let i = 0; i < fields.count; i++) {
    const name = fields.nameAt(i);
    if (ofConnection.has(name)) continue;
    const before = headers[name];
    const text = fields.textAt(i);
    if (name === 'set-cookie') headers[name] = [...(Array.isArray(before) ? before : []), text];
    else headers[name] = before === undefined ? text : `${before}, ${text}`;
  }
  return headers;
}
