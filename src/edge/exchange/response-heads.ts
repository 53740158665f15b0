import { incomplete } from '../../http1/fields.ts';
import { headMayBeWhole } from '../../http1/head-end.ts';
import { JoinedBytes } from '../../http1/joined-bytes.ts';
import type { ResponseHead } from '../../http1/response-head.ts';
import type { ConnectionContext } from '../context.ts';

/** Takes the heads of a response. `head` lies in `input`; both are overwritten after the call. */
export type HeadUser = {
  /** A response before the final one, e.g. 103. */
  interimHead(head: ResponseHead, input: Buffer): void;
  /** The final response, or a protocol switch: what follows in `input` is no longer a head. */
  finalHead(head: ResponseHead, input: Buffer): void;
  /** What came is no head that may be passed on; `reason` says why. */
  invalidHead(reason: string): void;
};

/** Reads what an upstream sends before the body of its final response. */
export class ResponseHeads {
  readonly #user: HeadUser;
  /** Bytes that are not a whole head yet. */
  #partial: Buffer | null = null;
  #joined: JoinedBytes | null = null;
  #interims = 0;

  constructor(user: HeadUser) {
    this.#user = user;
  }

  /** Part of a head has come, but not all of it. */
  get begun(): boolean {
    return this.#partial !== null;
  }

  /** How many interim responses there were. */
  get interims(): number {
    return this.#interims;
  }

  /** Bytes came. Calls the user for each whole head; for none after the final one. */
  read(bytes: Buffer, { responseHead: head, limits }: Pick<ConnectionContext, 'responseHead' | 'limits'>): void {
    const before = this.#partial;
    const input = before === null ? bytes : (this.#joined ??= new JoinedBytes()).join(before, bytes);
    this.#partial = input;
    if (before !== null && !headMayBeWhole(input, before.length) && input.length <= limits.responseHeadBytesMax) return;
    this.#partial = null;
    for (let at = 0; at < input.length;) {
      const end = head.parse(input, at, input.length);
      if (end === incomplete && input.length - at <= limits.responseHeadBytesMax) {
        this.#partial = input.subarray(at);
        return;
      }
      if (end === incomplete || end - at > limits.responseHeadBytesMax)
        return this.#user.invalidHead('its head is too large');
      if (end < incomplete) return this.#user.invalidHead(head.fault);
      if (head.status >= 200 || head.status === 101) return this.#user.finalHead(head, input);
      if (++this.#interims > limits.interimResponsesMax)
        return this.#user.invalidHead('there were too many interim responses');
      this.#user.interimHead(head, input);
      at = end;
    }
  }
}
