import { afterAll, expect, test } from 'bun:test';
import { join } from 'node:path';
import { BodyReader } from '../../src/http1/body-reader.ts';
import { RequestHead } from '../../src/http1/request-head.ts';
import { defaultLimits } from '../../src/edge/limits.ts';
import { mutate } from './engine/mutate.ts';
import { createRandom, type Random } from './engine/random.ts';
import { chunked } from './targets/http-bodies.ts';

// If the edge and the server behind it disagree about where a request ends, one client's bytes become another's
// request. Here the edge's parser and node:http (llhttp) read the same generated connections. The edge may refuse what
// node:http accepts; what the edge accepts, node:http must refuse or frame the same way.

const cases = Number(process.env['FRAMING_CASES'] ?? 1_500);

type Framed = { method: string; target: string; body: string };

/** The whole requests that the edge finds, up to the first one it refuses. */
function byEdge(bytes: Buffer): { requests: Framed[]; end: 'refused' | 'incomplete' | 'over' } {
  const requests: Framed[] = [];
  for (let at = 0; at < bytes.length;) {
    const head = new RequestHead(defaultLimits.headerLinesMax);
    const end = head.parse(bytes, at, bytes.length);
    if (end === 0) return { requests, end: 'incomplete' };
    if (end < 0) return { requests, end: 'refused' };
    const data: Buffer[] = [];
    const reader = new BodyReader((piece, start, stop) => void data.push(Buffer.from(piece.subarray(start, stop))));
    reader.reset(head.framing.kind, head.framing.length);
    at = reader.take(bytes, end, bytes.length);
    if (at < 0) return { requests, end: 'refused' };
    if (!reader.done) return { requests, end: 'incomplete' };
    requests.push({ method: head.method, target: head.target, body: Buffer.concat(data).toString('latin1') });
    // After these, a connection no longer carries HTTP/1.1 requests.
    if (head.fields.has('upgrade') || head.minorVersion === 0 || /close/i.test(head.fields.list('connection') ?? ''))
      break;
  }
  return { requests, end: 'over' };
}

type NodeAnswer = { requests: (Framed & { whole: boolean })[]; refused?: string };

const node = Bun.spawn(['node', join(import.meta.dir, 'node-http/frame.mjs')], {
  stdin: 'pipe',
  stdout: 'pipe',
  stderr: 'inherit',
});
const answers = lines(node.stdout);
afterAll(() => {
  node.kill();
});

async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const part of stream) {
    const parts = (rest + decoder.decode(part, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    yield* parts;
  }
}

async function byNode(bytes: Buffer): Promise<NodeAnswer> {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(bytes.length);
  void node.stdin.write(Buffer.concat([length, bytes]));
  await node.stdin.flush();
  const { value } = await answers.next();
  return JSON.parse(String(value)) as NodeAnswer;
}

const lengths = ['0', '1', '5', '05', '+5', '-5', '5 ', '0x5', '5,5', '5, 5', '1e1', '18446744073709551617', ''];
const codings = [
  'chunked',
  'Chunked',
  'chunked ',
  ' chunked',
  'chunked, chunked',
  'gzip, chunked',
  'chunked;q=1',
  'identity',
  'xchunked',
  '\tchunked',
  'chunked\x0b',
];
const odd = [
  'Content-Length : 5',
  ' Content-Length: 5',
  'Content-Length\t: 5',
  'X: a\nContent-Length: 5',
  'X: a\r\n Content-Length: 5',
  'Transfer-Encoding\0: chunked',
  'Connection: close',
  'Connection: keep-alive',
  'Expect: 100-continue',
  'X: \x00',
  'X: a\rb',
  ': x',
  'Host: b',
];

/** A connection of one to three requests, with tricks of smugglers. */
function connection(random: Random): Buffer {
  const requests = Array.from({ length: 1 + random.below(3) }, () => {
    const fields = ['Host: a'];
    for (let left = random.below(3); left > 0; left--)
      fields.push(
        random.pick([
          () => `Content-Length: ${random.pick(lengths)}`,
          () => `Transfer-Encoding: ${random.pick(codings)}`,
          () => random.pick(odd),
          () => 'X-Field: value',
        ])(),
      );
    const body = random.pick([
      () => Buffer.alloc(0),
      () => Buffer.from('hello'),
      () => Buffer.from('5\r\nhello\r\n0\r\n\r\n'),
      () => chunked(random),
      () => Buffer.from('GET /inner HTTP/1.1\r\nHost: a\r\n\r\n'),
    ])();
    const end = random.once(30) ? random.pick(['\n\n', '\r\r', '\n\r\n']) : '\r\n\r\n';
    return Buffer.concat([
      Buffer.from(
        `${random.pick(['GET', 'POST', 'PUT', 'DELETE'])} ${random.pick(['/', '/a?b', '*', 'http://a/b'])} HTTP/1.${random.once(12) ? 0 : 1}\r\n${fields.join('\r\n')}${end}`,
        'latin1',
      ),
      body,
    ]);
  });
  const bytes = Buffer.concat(requests);
  return random.once(2)
    ? bytes
    : mutate(
        bytes,
        random,
        {
          inputs: [bytes],
          words: ['\r\n', '\n', ' ', '\0', 'chunked', '0\r\n\r\n', 'Content-Length: 5\r\n', ';', '\t'].map(word =>
            Buffer.from(word),
          ),
        },
        2_048,
      );
}

/** What llhttp refuses and the edge passes on: none of it moves the end of a request. */
const documented = [/^HPE_INVALID_METHOD$/, /^HPE_INVALID_URL$/, /^HPE_CLOSED_CONNECTION$/];

test(`${cases} connections are framed by llhttp as by the edge, or refused`, async () => {
  const seed = process.env['FRAMING_SEED'] ?? 'framing';
  const seen = { same: 0, edgeRefused: 0, nodeRefused: {} as Record<string, number>, requests: 0 };
  for (let run = 0; run < cases; run++) {
    const bytes = connection(createRandom(`${seed}/${run}`));
    const [edge, other] = [byEdge(bytes), await byNode(bytes)];
    const theirs = other.requests
      .filter(({ whole }) => whole)
      .map(({ method, target, body }) => ({ method, target, body }));
    const common = Math.min(edge.requests.length, theirs.length);
    const shown = { run, bytes: bytes.toString('latin1'), refused: other.refused };
    // Requests that both accept are the same, in the same order.
    expect({ ...shown, requests: edge.requests.slice(0, common) }).toEqual({
      ...shown,
      requests: theirs.slice(0, common),
    });
    seen.requests += common;
    if (edge.requests.length === theirs.length) seen.same++;
    else if (edge.requests.length < theirs.length) {
      // Either the edge has refused, or it stops after an upgrade or a close; it never waits for more of a whole
      // request.
      expect({ ...shown, end: edge.end }).not.toEqual({ ...shown, end: 'incomplete' });
      seen.edgeRefused++;
    } else {
      const reason = other.refused ?? 'none';
      expect({ ...shown, documented: documented.some(code => code.test(reason)) }).toEqual({
        ...shown,
        documented: true,
      });
      seen.nodeRefused[reason] = (seen.nodeRefused[reason] ?? 0) + 1;
    }
  }
  expect(seen.same).toBeGreaterThan(cases / 3);
  expect(seen.edgeRefused).toBeGreaterThan(0);
  expect(seen.requests).toBeGreaterThan(cases / 3);
}, 600_000);
