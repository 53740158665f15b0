import type { Client } from '../../../src/edge/connection/client.ts';
import { composeRequest, hostOf, pathOf } from '../../../src/edge/exchange/compose-request.ts';
import { composeResponse, needsRewrite } from '../../../src/edge/exchange/compose-response.ts';
import { RequestHead } from '../../../src/http1/request-head.ts';
import { ResponseHead } from '../../../src/http1/response-head.ts';
import { defaultLimits } from '../../../src/edge/limits.ts';
import { agree, holds, type Target } from '../engine/target.ts';
import { requestHeads, responseHeads } from './http-heads.ts';

const fieldsMax = defaultLimits.headerLinesMax;
const room = Buffer.alloc(defaultLimits.responseHeadBytesMax + (64 << 10));

const clientOf = (trusts: boolean) =>
  ({
    context: { trustForwardedHeaders: trusts },
    address: '192.0.2.1',
    secure: true,
    forwardedLines: Buffer.from('X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: '),
  }) as unknown as Client;

/** A request that the edge accepts must be one request, with the same framing, for the next server. */
export const rewrittenRequests: Target = {
  ...requestHeads,
  name: 'rewritten-requests',
  dictionary: [
    ...(requestHeads.dictionary ?? []),
    'Connection: content-length',
    'Connection: host',
    ', ',
    'x-atoll-sandbox: a',
    'http://user@a/',
  ],
  work(input) {
    const head = new RequestHead(fieldsMax);
    if (head.parse(input, 0, input.length) > 0)
      composeRequest(room, head, clientOf(true), { host: null, upgrade: true });
  },
  check(input, random) {
    const head = new RequestHead(fieldsMax);
    if (head.parse(input, 0, input.length) <= 0) return 'refused';
    const plan = { host: random.once(2) ? 'b.example' : null, upgrade: random.once(2) };
    const made = Buffer.from(room.subarray(0, composeRequest(room, head, clientOf(random.once(2)), plan)));
    // A line may have been added to the largest allowed number of lines.
    const next = new RequestHead(fieldsMax + 8);
    agree(
      next.parse(made, 0, made.length),
      made.length,
      `the next parser sees one whole head (${next.fault.reason}) in ${JSON.stringify(made.toString('latin1').slice(0, 300))}`,
    );
    agree(next.framing, head.framing, 'the framing is the same');
    agree(next.method, head.method, 'the method is the same');
    holds(
      next.fields.times('host') <= 1 && next.fields.ids.subarray(0, next.fields.count).every(id => id !== 254),
      'nothing of ours is let in',
    );
    if (plan.host !== null) agree(next.fields.text('host'), plan.host, 'the host is the one that was decided');
    else agree(next.fields.text('host') ?? '', hostOf(head) ?? '', 'the host is the client’s');
    holds(!next.targetIsAbsolute, 'the target is without scheme');
    holds(pathOf(head) === '' || next.target.endsWith(pathOf(head)), 'the path is the same');
    return `accepted ${head.framing.kind}`;
  },
};

export const rewrittenResponses: Target = {
  ...responseHeads,
  name: 'rewritten-responses',
  work(input) {
    const head = new ResponseHead(fieldsMax);
    if (head.parse(input, 0, input.length) > 0)
      composeResponse(room, head, { close: true, isForeign: true, isInert: true });
  },
  check(input, random) {
    const head = new ResponseHead(fieldsMax);
    if (head.parse(input, 0, input.length) <= 0) return 'refused';
    const plan = { close: random.once(2), isForeign: random.once(2), isInert: random.once(2) };
    const toHead = random.once(2);
    const framing = head.framing(toHead);
    if (framing === undefined || !needsRewrite(head, plan)) return 'as it is';
    const made = Buffer.from(room.subarray(0, composeResponse(room, head, plan)));
    const next = new ResponseHead(fieldsMax + 8);
    agree(next.parse(made, 0, made.length), made.length, 'the client sees one whole head');
    holds(!plan.isForeign || !next.fields.has('set-cookie'), 'another origin gets no cookie');
    const isInert = made.includes('\r\nContent-Security-Policy: sandbox\r\n');
    holds(!plan.isInert || isInert, 'an inert page has no script');
    agree([next.status, next.framing(toHead)], [head.status, framing], 'status and framing are the same');
    return `rewritten ${framing.kind}`;
  },
};
