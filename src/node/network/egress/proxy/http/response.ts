import { incomplete } from '../../../../../http1/fields.ts';
import { headMayBeWhole } from '../../../../../http1/head-end.ts';
import { type ResponseFraming, ResponseHead } from '../../../../../http1/response-head.ts';
import { fieldsMax, headBytesMax } from './limits.ts';

/** A response, as far as is needed to know where it ends. */
type RelayedResponse = {
  readonly status: number;
  readonly body: ResponseFraming;
  /** Octets of the head. */
  readonly length: number;
};

const noBody: ResponseFraming = { kind: 'none', length: 0 };

/**
 * Reads the head of a response to a request with `method`. A response whose end could be read in two ways is invalid,
 * too; `searched` is as for `readRequest`.
 */
export function readResponse(bytes: Buffer, method: string, searched = 0): RelayedResponse | 'incomplete' | 'invalid' {
  if (bytes.length <= headBytesMax && !headMayBeWhole(bytes, searched)) return 'incomplete';
  const head = new ResponseHead(fieldsMax);
  const length = head.parse(bytes, 0, bytes.length);
  if (length === incomplete) return bytes.length > headBytesMax ? 'invalid' : 'incomplete';
  if (length < incomplete || length > headBytesMax) return 'invalid';
  const { status } = head;
  const body = status < 200 ? noBody : head.framing(method === 'HEAD');
  return body === undefined ? 'invalid' : { status, body, length };
}
