import { createSocket } from 'node:dgram';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

// A name server that knows the Services of a Kubernetes: it asks the API for each name. `names.ts FOLDER SERVER
// ADDRESS`

const [, , folder = '', server = '', address = ''] = process.argv;
const read = (name: string) => readFileSync(join(folder, name), 'utf8');
const tls = { ca: read('ca.crt'), cert: read('admin.crt'), key: read('admin.key') };
const nameError = 3;
const typeA = 1;

async function addressOf(name: string): Promise<string | undefined> {
  const [, service, namespace] = /^([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.cluster\.local)?$/.exec(name) ?? [];
  if (service === undefined) return undefined;
  const answer = await fetch(`${server}/api/v1/namespaces/${namespace}/services/${service}`, { tls });
  const { spec } = (await answer.json()) as { spec?: { clusterIP?: string } };
  return spec?.clusterIP;
}

/** The question of a query (RFC 1035, 4.1.2): where it ends, the name, and the type. */
function questionOf(query: Buffer): { end: number; name: string; type: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]; length; length = query[at]) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase());
    at += length + 1;
  }
  return { end: at + 5, name: labels.join('.'), type: query.readUInt16BE(at + 1) };
}

const socket = createSocket('udp4');
socket.on('message', async (query, from) => {
  const { end, name, type } = questionOf(query);
  const found = await addressOf(name).catch(() => undefined);
  const answer = found !== undefined && type === typeA;
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  head.writeUInt16BE(0x8580 | (found === undefined ? nameError : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(answer ? 1 : 0, 6);
  // A pointer to the question's name, type A, class IN, five seconds, four octets.
  const record = answer ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, ...found.split('.').map(Number)] : [];
  socket.send(Buffer.concat([head, query.subarray(12, end), Buffer.from(record)]), from.port, from.address);
});
socket.bind(53, address);
