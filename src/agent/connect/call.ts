import { AtollError } from '../../base/error.ts';
import type { Message } from './message.ts';
import type { Outbox } from './outbox.ts';

/** Seconds between keepalive events if the client doesn't say. */
const keepaliveSecondsDefault = 90;
/** A timer counts at most this many milliseconds (2³¹−1, 24.8 days); a longer timeout is as good as none. */
const timerMsMax = 0x7fff_ffff;

/** A call without its message. */
export type Call = {
  /** The user named by Basic authorization; empty: the sandbox's default. */
  username: string;
  /** Deadline of the call, milliseconds from its start; undefined: none. */
  timeoutMs: number | undefined;
  keepaliveMs: number;
  /** An old client that can't read an entry's newer members. */
  wantsShortEntries: boolean;
};

/** Answers one message with one message. */
export type UnaryMethod = { kind: 'unary'; messageBytesMax: number; answer(message: Message, call: Call): unknown };

/** Answers one message with many. An error thrown before `outbox` was handed over becomes the end of the stream. */
export type ServerStreamMethod = {
  kind: 'server-stream';
  open(message: Message, call: Call, outbox: Outbox): Promise<void> | void;
};

/** Answers many messages with one. */
export type ClientStreamMethod = {
  kind: 'client-stream';
  messageBytesMax: number;
  answer(messages: AsyncIterable<unknown>, call: Call): Promise<unknown>;
};

/** A method, by how many messages it takes and answers. */
export type Method = UnaryMethod | ServerStreamMethod | ClientStreamMethod;

/** Methods by path, e.g. `/process.Process/Start`. */
export type Methods = ReadonlyMap<string, Method>;

/** Reads the headers of a call. Errors: `invalid` if the timeout is not a number of milliseconds. */
export function readCall(headers: Headers): Call {
  return {
    username: basicUsername(headers.get('authorization')),
    timeoutMs: readTimeout(headers.get('connect-timeout-ms')),
    keepaliveMs: readKeepalive(headers.get('keepalive-ping-interval')),
    wantsShortEntries: headers.get('user-agent') === 'connect-python',
  };
}

function basicUsername(authorization: string | null): string {
  const [scheme = '', encoded = '', ...more] = (authorization ?? '').split(' ').filter(word => word !== '');
  if (scheme.toLowerCase() !== 'basic' || more.length > 0 || !/^[A-Za-z0-9+/=_-]*$/.test(encoded)) return '';
  const [name = ''] = Buffer.from(encoded, 'base64').toString().split(':');
  return name;
}

function readTimeout(text: string | null): number | undefined {
  if (text === null || text === '') return undefined;
  if (!/^\d+$/.test(text))
    throw new AtollError('invalid', `Connect-Timeout-Ms must be a number of milliseconds, not '${text.slice(0, 40)}'`);
  const timeoutMs = Number(text);
  return timeoutMs === 0 || timeoutMs > timerMsMax ? undefined : timeoutMs;
}

function readKeepalive(text: string | null): number {
  const seconds = text !== null && /^\d+$/.test(text) ? Number(text) : 0;
  return Math.min((seconds || keepaliveSecondsDefault) * 1000, timerMsMax);
}
