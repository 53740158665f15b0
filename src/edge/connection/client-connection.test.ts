import { expect, test } from 'bun:test';
import { silentLog } from '../../base/telemetry/log.ts';
import { RequestHead } from '../../http1/request-head.ts';
import { ResponseHead } from '../../http1/response-head.ts';
import { plainAnswer } from '../answer/answer.ts';
import { ClientTable } from '../clients/client-table.ts';
import type { ConnectionContext } from '../context.ts';
import { LargeHeads } from '../clients/large-heads.ts';
import { WaitingBytes } from '../waiting-bytes.ts';
import { Http2Turns } from '../http2-turns.ts';
import { limitsWithin } from '../limits.ts';
import { ClientConnection } from './client-connection.ts';

// How a connection uses its place in the client table. Its requests and its end are in `../exchange/exchange.test.ts`.

const limits = { ...limitsWithin(1000), clientConnectionsMax: 1, localConnectionsReserved: 0 };

/** The only connection that this edge has a place for. Its client takes as much as it has room for. */
function scene() {
  let room = Number.POSITIVE_INFINITY;
  const context: ConnectionContext = {
    ...{ limits, log: silentLog, trustForwardedHeaders: false, clock: { nowMs: 0 } },
    requestHead: new RequestHead(limits.headerLinesMax),
    ...{
      turns: new Http2Turns(),
      largeHeads: new LargeHeads(limits),
      waiting: new WaitingBytes(limits.waitingBytesMax),
    },
    responseHead: new ResponseHead(limits.headerLinesMax),
    ...{ scratch: Buffer.alloc(0), clients: new Set(), stopping: false },
  };
  const table = new ClientTable(limits, false);
  const seat = table.admit('192.0.2.9', 0);
  if (seat === null) throw new Error('there is no place');
  const socket = {
    ...{ remoteAddress: '192.0.2.9', bytesWritten: 0, pause() {}, resume() {}, shutdown() {}, terminate() {} },
    write(bytes: Uint8Array, start = 0, length = bytes.length - start) {
      const taken = Math.min(length, room);
      room -= taken;
      return taken;
    },
    close: () => client.wasClosed(undefined),
  };
  const client = new ClientConnection(context, socket, false, of => void of.beginRouting(), seat.origin, seat);
  seat.owner = client;
  return {
    ...{ client, table },
    send: (text: string) => client.received(Buffer.from(text)),
    answer: () => client.refuse(plainAnswer(200, 'ok'), context.requestHead),
    readsOnly: (bytes: number) => void (room = bytes),
    readsOn() {
      room = Number.POSITIVE_INFINITY;
      client.drained();
    },
    /** Whether somebody else gets the place. */
    givesWay: () => table.admit('192.0.2.10', 0) !== null && table.evicted === 1,
  };
}
type Scene = ReturnType<typeof scene>;

const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const last = 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
const post = 'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n';
const answered = (request: string) => (at: Scene) => (at.send(request), at.answer());
const waiting = (request: string) => (at: Scene) => (at.readsOnly(5), at.send(request), at.answer());
const readLate = (request: string) => (at: Scene) => (waiting(request)(at), at.readsOn());

test.each<[has: string, givesWay: boolean, enter: (at: Scene) => void]>([
  ['said nothing', true, () => {}],
  ['said half a head', true, at => at.send('GET / HT')],
  ['a request under way', false, at => at.send(get)],
  ['sent half of what was answered', false, answered(`${post}ab`)],
  ['its response', true, answered(get)],
  ['its response, and asked again', false, at => (answered(get)(at), at.send(get))],
  ['half of its response', false, waiting(get)],
  ['its response by and by', true, readLate(get)],
  ['its last response', true, answered(last)],
  ['half of its last response', false, waiting(last)],
  ['its last response by and by', true, readLate(last)],
  ['half of the reason why it can’t be read', true, at => (at.readsOnly(5), at.send('nonsense\r\n\r\n'))],
])('whether a connection that has %s gives way to another one: %p', (_, givesWay, enter) => {
  const at = scene();
  enter(at);
  expect(at.givesWay()).toBe(givesWay);
});

test('one that is gone has no place, whatever it was doing', () => {
  const at = scene();
  at.send(get);
  at.client.wasClosed(undefined);
  expect([at.table.size, at.table.admit('192.0.2.10', 0) !== null, at.table.evicted]).toEqual([0, true, 0]);
});
