import { afterEach, expect, test } from 'bun:test';
import { createLog, silentLog } from './log.ts';
import { spanQueueMax, startSpanExport, type SpanExport } from './span-export.ts';
import type { Span } from './trace.ts';

type Message = {
  resourceSpans: { resource: { attributes: unknown[] }; scopeSpans: { spans: Record<string, unknown>[] }[] }[];
};
type Collector = { url: string; messages: Message[]; headers: Headers[]; stop(): void };

const collectors: Collector[] = [];
afterEach(() => {
  for (const collector of collectors.splice(0)) collector.stop();
});

/** A collector with a given answer for each attempt. */
function collectorThat(answer: (attempt: number) => Response | Promise<Response>): Collector {
  const messages: Message[] = [];
  const headers: Headers[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      headers.push(request.headers);
      messages.push((await request.json()) as Message);
      return answer(messages.length);
    },
  });
  const collector = {
    url: `http://127.0.0.1:${server.port}/v1/traces`,
    messages,
    headers,
    stop: () => void server.stop(true),
  };
  collectors.push(collector);
  return collector;
}

const span = (name: string, more: Partial<Span> = {}): Span => ({
  traceId: 'a'.repeat(32),
  spanId: 'b'.repeat(16),
  parentSpanId: undefined,
  name,
  kind: 'internal',
  startMs: 1_700_000_000_000.5,
  endMs: 1_700_000_000_001.25,
  attributes: {},
  error: undefined,
  ...more,
});
const exportTo = (url: string, more: object = {}) =>
  startSpanExport({
    url,
    headers: { authorization: 'Bearer t0p' },
    serviceName: 'atoll',
    serviceVersion: '1.2.3',
    log: silentLog,
    retryDelaysMs: [1, 1],
    ...more,
  });
const namesIn = (messages: Message[]) =>
  messages.flatMap(message =>
    message.resourceSpans.flatMap(resource =>
      resource.scopeSpans.flatMap(scope => scope.spans.map(one => one['name'])),
    ),
  );
const countOf = (exporter: SpanExport, result: string) =>
  exporter.metrics()[0]?.samples.find(sample => sample.labels?.['result'] === result)?.value ?? 0;

test('spans reach a collector in the form of OTLP, with the configured headers', async () => {
  const collector = collectorThat(() => Response.json({}));
  const exporter = exportTo(collector.url);
  exporter.record([
    span('step', { parentSpanId: 'c'.repeat(16) }),
    span('GET /x', { kind: 'server', attributes: { route: '/x', status: 503 }, error: 'unavailable' }),
  ]);
  await exporter.stop();
  expect(collector.headers[0]?.get('authorization')).toBe('Bearer t0p');
  expect(collector.messages).toEqual([
    {
      resourceSpans: [
        {
          resource: {
            attributes: [
              { key: 'service.name', value: { stringValue: 'atoll' } },
              { key: 'service.version', value: { stringValue: '1.2.3' } },
            ],
          },
          scopeSpans: [
            {
              scope: { name: 'atoll', version: '1.2.3' },
              spans: [
                {
                  traceId: 'a'.repeat(32),
                  spanId: 'b'.repeat(16),
                  parentSpanId: 'c'.repeat(16),
                  name: 'step',
                  kind: 1,
                  startTimeUnixNano: '1700000000000500000',
                  endTimeUnixNano: '1700000000001250000',
                  attributes: [],
                  status: {},
                },
                {
                  traceId: 'a'.repeat(32),
                  spanId: 'b'.repeat(16),
                  name: 'GET /x',
                  kind: 2,
                  startTimeUnixNano: '1700000000000500000',
                  endTimeUnixNano: '1700000000001250000',
                  attributes: [
                    { key: 'route', value: { stringValue: '/x' } },
                    { key: 'status', value: { intValue: '503' } },
                  ],
                  status: { code: 2, message: 'unavailable' },
                },
              ],
            },
          ],
        },
      ],
    } as unknown as Message,
  ]);
  expect(countOf(exporter, 'exported')).toBe(2);
});

test('a busy collector is asked again, one that refuses is not', async () => {
  const busy = collectorThat(attempt => new Response(null, { status: attempt === 1 ? 503 : 200 }));
  const first = exportTo(busy.url);
  first.record(Array.from({ length: 512 }, (_, index) => span(`s${index}`)));
  while (countOf(first, 'exported') === 0) await Bun.sleep(1);
  expect(busy.messages.length).toBe(2);
  await first.stop();

  const refusing = collectorThat(() => new Response('no', { status: 400 }));
  const lines: string[] = [];
  const second = exportTo(refusing.url, { log: createLog('warn', line => void lines.push(line)) });
  second.record([span('x')]);
  await second.stop();
  expect(refusing.messages.length).toBe(1);
  expect(countOf(second, 'failed')).toBe(1);
  expect(lines.length).toBe(1);
  expect(lines.join('')).not.toContain('t0p');
});

test('a collector that never answers delays nobody: the queue is bounded and the end comes', async () => {
  const stalled = collectorThat(() => new Promise<Response>(() => {}));
  const exporter = exportTo(stalled.url);
  for (let index = 0; index < 20; index++) exporter.record(Array.from({ length: 512 }, () => span('x')));
  while (stalled.messages.length === 0) await Bun.sleep(1);
  exporter.record(Array.from({ length: spanQueueMax }, () => span('x')));
  expect(countOf(exporter, 'dropped')).toBeGreaterThan(0);
  expect(exporter.metrics()[1]?.samples[0]?.value).toBeLessThanOrEqual(spanQueueMax);
  await exporter.stop();
  expect(countOf(exporter, 'exported')).toBe(0);
  expect(countOf(exporter, 'failed') + countOf(exporter, 'dropped')).toBe(20 * 512 + spanQueueMax);
}, 15_000);

test('a missing collector costs spans and nothing else', async () => {
  const gone = collectorThat(() => new Response());
  gone.stop();
  const exporter = exportTo(gone.url);
  exporter.record([span('x')]);
  await exporter.stop();
  expect(countOf(exporter, 'failed')).toBe(1);
  expect(namesIn(gone.messages)).toEqual([]);
});

test('an exporter with nothing to send at its stop sends nothing', async () => {
  const collector = collectorThat(() => new Response());
  const exporter = exportTo(collector.url);
  await exporter.stop();
  expect(collector.messages).toEqual([]);
});
