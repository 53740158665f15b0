import {
  emptyAnswer,
  parseQuery,
  recordType,
  responseCode,
  writeQuery,
  type Query,
} from '../../../src/node/network/egress/proxy/dns/message.ts';
import { lookUp, type Record } from './names.ts';

/** Too long for UDP. */
const longText = Array.from({ length: 20 }, (_, index) => `${index}`.padStart(200, 'x'));

/** A name server for the lab's zones, by UDP and TCP, that reports the questions it gets. */
export async function startNameServer(
  hostname: string,
  zones: Map<string, Record>,
  onQuestion: (question: string, from: string) => void,
): Promise<void> {
  const answer = (bytes: Buffer, from: string, bytesMax: number): Buffer => {
    const query = parseQuery(bytes);
    if (!query) return Buffer.alloc(0);
    // The platform asks in only one form: a question must contain nothing else that a sandbox wrote.
    onQuestion(`${query.name} ${query.type}${bytes.equals(writeQuery(query)) ? '' : ' and more'}`, from);
    const whole = answerTo(query, lookUp(zones, query.name));
    if (whole.length <= bytesMax) return whole;
    const cut = emptyAnswer(query, responseCode.ok);
    cut.writeUInt16BE(cut.readUInt16BE(2) | 0x0200, 2);
    return cut;
  };
  await Bun.udpSocket({
    hostname,
    port: 53,
    socket: {
      data(socket, bytes, port, from) {
        socket.send(answer(bytes, from, 1232), port, from);
      },
      error() {}, // whoever asked is gone
    },
  });
  Bun.listen({
    hostname,
    port: 53,
    socket: {
      data(socket, bytes) {
        const message = answer(bytes.subarray(2), socket.remoteAddress, 0xffff);
        socket.write(Buffer.concat([Buffer.of(message.length >> 8, message.length & 255), message]));
      },
      error() {},
    },
  });
}

function answerTo(query: Query, found: { alias?: string; addresses: string[] } | undefined): Buffer {
  const records: Buffer[] = [];
  if (!found && query.name !== 'long.allowed.test') return emptyAnswer(query, responseCode.noSuchName);
  if (query.type === recordType.A && found) {
    if (found.alias !== undefined) records.push(record(query.name, recordType.CNAME, nameOf(found.alias)));
    records.push(
      ...found.addresses.map(address =>
        record(found.alias ?? query.name, recordType.A, Buffer.from(address.split('.').map(Number))),
      ),
    );
  }
  if (query.type === recordType.HTTPS) records.push(record(query.name, recordType.HTTPS, Buffer.from([0, 1, 0])));
  if (query.type === 16)
    records.push(
      ...longText.map(text => record(query.name, 16, Buffer.concat([Buffer.of(text.length), Buffer.from(text)]))),
    );
  const answer = emptyAnswer(query, responseCode.ok);
  answer.writeUInt16BE(records.length, 6);
  return Buffer.concat([answer, ...records]);
}

function record(name: string, type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(1, 2);
  head.writeUInt16BE(data.length, 8);
  return Buffer.concat([nameOf(name), head, data]);
}

function nameOf(name: string): Buffer {
  return Buffer.concat([
    ...name.split('.').map(label => Buffer.concat([Buffer.of(label.length), Buffer.from(label)])),
    Buffer.of(0),
  ]);
}
