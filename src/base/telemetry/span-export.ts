import { messageOf } from '../error.ts';
import type { Log } from './log.ts';
import { counter, gauge, type Metric } from './meter.ts';
import type { Span } from './trace.ts';

/** Spans that wait to be sent; further ones are dropped. */
export const spanQueueMax = 4_096;
const batchMax = 512;
const batchIntervalMs = 2_000;
const requestTimeoutMs = 10_000;
/** Waits before a batch that the collector could not take is sent again; after these it is dropped. */
const retryDelaysMs = [1_000, 4_000];
/** How long the end waits for the last spans to be sent, milliseconds. */
const stopTimeoutMs = 3_000;
const complainIntervalMs = 60_000;

/** Where spans go, and in whose name. */
type SpanExportOptions = {
  /** URL that takes traces by OTLP over HTTP, e.g. `http://collector:4318/v1/traces`. */
  url: string;
  /** E.g. credentials. Never logged. */
  headers: Record<string, string>;
  serviceName: string;
  serviceVersion: string;
  log: Log;
  retryDelaysMs?: readonly number[];
};

/** Sends spans to a collector. Nobody ever waits for it: spans that it can't take are dropped and counted. */
export type SpanExport = { record(spans: readonly Span[]): void; metrics(): Metric[]; stop(): Promise<void> };

/** Sends spans in batches by OTLP over HTTP, JSON. A collector that is away costs spans, never memory or requests. */
export function startSpanExport(options: SpanExportOptions): SpanExport {
  const delays = options.retryDelaysMs ?? retryDelaysMs;
  const outcomes = counter({
    name: 'atoll_trace_spans_total',
    help: 'Spans by what became of them',
    labels: ['result'],
  });
  const queue: Span[] = [];
  const ending = new AbortController();
  let wake = () => {};
  let stopWaiting = () => {};
  let stopping = false;
  let complainedAtMs = -Infinity;

  const complain = (error: unknown) => {
    if (performance.now() - complainedAtMs < complainIntervalMs) return;
    complainedAtMs = performance.now();
    options.log.warn("traces can't be exported", { error: messageOf(error) });
  };
  const pause = (durationMs: number, offer: (resume: () => void) => void) =>
    new Promise<void>(resolve => {
      const timer = setTimeout(resolve, durationMs);
      offer(() => {
        clearTimeout(timer);
        resolve();
      });
    });

  const send = async (batch: readonly Span[]) => {
    const body = JSON.stringify(messageFor(batch, options));
    for (let attempt = 0; ; attempt++) {
      try {
        await post(options, body, ending.signal);
        return outcomes.add(['exported'], batch.length);
      } catch (error) {
        complain(error);
        const delay = delays[attempt];
        const isLasting = error instanceof Refused && !error.isPassing;
        if (delay === undefined || isLasting || stopping) return outcomes.add(['failed'], batch.length);
        await pause(delay, resume => (stopWaiting = resume));
      }
    }
  };

  const ended = (async () => {
    while (!stopping || queue.length > 0) {
      if (queue.length < batchMax && !stopping) await pause(batchIntervalMs, resume => (wake = resume));
      const batch = queue.splice(0, batchMax);
      if (batch.length > 0) await send(batch);
    }
  })();

  return {
    record(spans) {
      const room = Math.max(spanQueueMax - queue.length, 0);
      queue.push(...spans.slice(0, room));
      if (spans.length > room) outcomes.add(['dropped'], spans.length - room);
      if (queue.length >= batchMax) wake();
    },
    metrics: () => [outcomes.metric(), gauge('atoll_trace_spans_waiting', 'Spans that wait to be sent', queue.length)],
    async stop() {
      stopping = true;
      wake();
      stopWaiting();
      const deadline = setTimeout(() => ending.abort(), stopTimeoutMs);
      await ended;
      clearTimeout(deadline);
    },
  };
}

/** The collector answered with a status other than success. */
class Refused extends Error {
  readonly isPassing: boolean;
  constructor(status: number) {
    super(`the collector answered ${status}`);
    // Source: OTLP specification, "OTLP/HTTP response".
    this.isPassing = [429, 502, 503, 504].includes(status);
  }
}

async function post({ url, headers }: SpanExportOptions, body: string, signal: AbortSignal): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
    signal: AbortSignal.any([signal, AbortSignal.timeout(requestTimeoutMs)]),
  });
  await response.body?.cancel();
  if (!response.ok) throw new Refused(response.status);
}

// opentelemetry-proto, trace.proto: SpanKind and StatusCode.
const kinds: Record<Span['kind'], number> = { internal: 1, server: 2 };
const statusError = 2;

/** `ExportTraceServiceRequest` in JSON. Source: OTLP specification, "JSON Protobuf encoding". */
function messageFor(spans: readonly Span[], { serviceName, serviceVersion }: SpanExportOptions) {
  return {
    resourceSpans: [
      {
        resource: { attributes: attributesOf({ 'service.name': serviceName, 'service.version': serviceVersion }) },
        scopeSpans: [{ scope: { name: 'atoll', version: serviceVersion }, spans: spans.map(spanMessage) }],
      },
    ],
  };
}

function spanMessage({ traceId, spanId, parentSpanId, name, kind, startMs, endMs, attributes, error }: Span) {
  return {
    traceId,
    spanId,
    ...(parentSpanId !== undefined && { parentSpanId }),
    name,
    kind: kinds[kind],
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(endMs),
    attributes: attributesOf(attributes),
    status: error === undefined ? {} : { code: statusError, message: error },
  };
}

function attributesOf(attributes: Record<string, string | number>) {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'string' ? { stringValue: value } : { intValue: String(value) },
  }));
}

const nanoseconds = (ms: number) => String(BigInt(Math.round(ms * 1000)) * 1000n);
