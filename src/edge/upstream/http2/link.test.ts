import { expect, test } from 'bun:test';
import { Http2Turns } from '../../http2-turns.ts';
import { defaultLimits } from '../../limits.ts';
import type { ByteSocket } from '../../send-buffer.ts';
import { Upstream } from '../upstream.ts';
import { Http2Link } from './link.ts';

const nowhere: ByteSocket = {
  remoteAddress: '',
  bytesWritten: 0,
  write: (bytes, start = 0, length = bytes.length - start) => length,
  pause() {},
  resume() {},
  shutdown() {},
  close() {},
  terminate() {},
};
const home = { add() {}, give() {}, forget() {} };
const settings = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
const farewell = Buffer.from([0, 0, 8, 7, ...Array.from({ length: 13 }, () => 0)]);

test('whoever asks a service that has said farewell hears that it is gone, and not while he writes', async () => {
  const raw = new Upstream(home);
  raw.opened(nowhere);
  raw.early = [Buffer.concat([settings, farewell])];
  const { upstream } = new Http2Link(raw, home, { limits: defaultLimits, turns: new Http2Turns() }, false);
  while (!upstream.ended) await Bun.sleep(1);
  const gone = Promise.withResolvers<Error | undefined>();
  let isWriting = true;
  upstream.user = {
    upstreamData() {},
    upstreamDrained() {},
    upstreamEnded() {},
    upstreamClosed: error => gone.resolve(isWriting ? new Error('too early') : error),
    cut() {},
  };
  const head = Buffer.from('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n');
  expect(upstream.sendBuffer.write(head, 0, head.length, false)).toBe(true);
  expect(upstream.sendBuffer.write(Buffer.from('x'), 0, 1, false)).toBe(true);
  isWriting = false;
  expect((await gone.promise)?.message).toBe('the connection was closed');
});

const frame = (type: number, flags: number, stream: number, text = '') =>
  Buffer.concat([Buffer.of(0, 0, text.length, type, flags, 0, 0, 0, stream), Buffer.from(text, 'latin1')]);

test('a service that answers for the time being again and again is broken off', async () => {
  const raw = new Upstream(home);
  raw.opened(nowhere);
  raw.early = [settings];
  const { upstream } = new Http2Link(raw, home, { limits: defaultLimits, turns: new Http2Turns() }, false);
  const gone = Promise.withResolvers<Error | undefined>();
  upstream.user = {
    upstreamData() {},
    upstreamDrained() {},
    upstreamEnded() {},
    upstreamClosed: gone.resolve,
    cut() {},
  };
  const head = Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  upstream.sendBuffer.write(head, 0, head.length, false);
  const interim = frame(1, 4, 1, '\x08\x03103');
  const many = Buffer.concat(Array.from({ length: defaultLimits.interimResponsesMax }, () => interim));
  raw.user?.upstreamData(many);
  await Bun.sleep(5);
  expect(upstream.closed).toBe(false);
  raw.user?.upstreamData(interim);
  expect((await gone.promise)?.message).toBe('there were too many interim responses');
});
