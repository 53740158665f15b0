import { AsyncLocalStorage } from 'node:async_hooks';
import { AtollError } from '../error.ts';
import { randomHex } from '../crypto/secret.ts';

type Step = { name: string; durationMs: number };

/** A span of work as OpenTelemetry has it. Times: epoch milliseconds. */
export type Span = {
  /** 32 and 16 hex digits. */
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  kind: 'server' | 'internal';
  startMs: number;
  endMs: number;
  attributes: Record<string, string | number>;
  /** The code of the error that it ended with. Messages stay out, as they may hold private things. */
  error: string | undefined;
};

type Trace = {
  traceId: string;
  /** Null where nobody collects the spans. */
  spans: Span[] | null;
  /** Other processes record the trace too. */
  isRecorded: boolean;
  steps: Step[];
  /** The traced work is over: steps that it left running are no longer recorded. */
  isOver: boolean;
  root: { name: string; attributes: Record<string, string | number>; error: string | undefined };
};

const active = new AsyncLocalStorage<{ trace: Trace; spanId: string }>();

/** Spans of one trace; further ones are dropped, as no request has so many steps. */
const spansMax = 256;

/** Runs `work` and, during a trace, records its duration under `name` (a token of RFC 9110). Steps may nest. */
export async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  const above = active.getStore();
  if (!above || above.trace.isOver) return work();
  const { trace } = above;
  const spanId = newSpanId();
  const startMs = now();
  let error: string | undefined;
  try {
    return await active.run({ trace, spanId }, work);
  } catch (thrown) {
    error = codeOf(thrown);
    throw thrown;
  } finally {
    const endMs = now();
    trace.steps.push({ name, durationMs: endMs - startMs });
    if (trace.spans && trace.spans.length < spansMax) {
      trace.spans.push({
        traceId: trace.traceId,
        spanId,
        parentSpanId: above.spanId,
        name,
        kind: 'internal',
        startMs,
        endMs,
        attributes: {},
        error,
      });
    }
  }
}

/** How one trace begins, and who receives it. */
type TraceOptions = {
  /** The caller's header `traceparent` (W3C Trace Context). Any other text counts as none. */
  parent?: string | null;
  /** Called with the spans when the work is done, the outermost last, unless the caller's trace is not recorded. */
  record?: (spans: Span[]) => void;
  /** Share of the traces begun here that are recorded, 0 to 1. Default 1. */
  ratio?: number;
};

/**
 * Runs `work` and answers its steps as the value of a `Server-Timing` header (W3C Server Timing): milliseconds, in the
 * order in which they ended.
 */
export async function traced<T>(
  work: () => Promise<T>,
  options: TraceOptions = {},
): Promise<{ result: T; serverTiming: string; traceId: string }> {
  const parent = parseTraceparent(options.parent ?? null);
  const traceId = parent?.traceId ?? randomHex(16);
  const isRecorded =
    options.record !== undefined && (parent ? parent.isRecorded : isChosen(traceId, options.ratio ?? 1));
  const trace: Trace = {
    traceId,
    spans: isRecorded ? [] : null,
    isRecorded,
    steps: [],
    isOver: false,
    root: { name: 'request', attributes: {}, error: undefined },
  };
  const spanId = newSpanId();
  const startMs = now();
  try {
    const result = await active.run({ trace, spanId }, work);
    trace.steps.push({ name: 'total', durationMs: now() - startMs });
    return {
      result,
      serverTiming: trace.steps.map(({ name, durationMs }) => `${name};dur=${durationMs.toFixed(3)}`).join(', '),
      traceId,
    };
  } finally {
    trace.isOver = true;
    if (trace.spans) {
      const outermost: Span = {
        traceId,
        spanId,
        parentSpanId: parent?.spanId,
        kind: 'server',
        startMs,
        endMs: now(),
        ...trace.root,
      };
      options.record?.([...trace.spans, outermost]);
    }
  }
}

/** Names the traced work and adds what is known about it. */
export function describeTrace(name: string, attributes: Record<string, string | number>, error?: string): void {
  const trace = active.getStore()?.trace;
  if (!trace) return;
  trace.root = { name, attributes: { ...trace.root.attributes, ...attributes }, error };
}

/** The header `traceparent` for a request on behalf of the work; undefined outside of a trace. */
export function traceparent(): string | undefined {
  const here = active.getStore();
  return here && `00-${here.trace.traceId}-${here.spanId}-${here.trace.isRecorded ? '01' : '00'}`;
}

/** A step of a trace that was done in another process. Times: epoch milliseconds. */
export type RemoteStep = Pick<Span, 'spanId' | 'name' | 'startMs' | 'endMs'> & { parentSpanId: string; error?: string };

/** Runs `work` on behalf of the trace `parent` of another process and hands over its steps, also when it fails. */
export async function collected<T>(
  parent: string,
  work: () => Promise<T>,
  handOver: (steps: RemoteStep[]) => void,
): Promise<T> {
  const known = parseTraceparent(parent);
  if (!known) return work();
  const { traceId, spanId, isRecorded } = known;
  const trace: Trace = {
    traceId,
    spans: [],
    isRecorded,
    steps: [],
    isOver: false,
    root: { name: '', attributes: {}, error: undefined },
  };
  try {
    return await active.run({ trace, spanId }, work);
  } finally {
    trace.isOver = true;
    const spans = trace.spans ?? [];
    handOver(
      spans.map(({ error, ...span }) => ({
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? spanId,
        name: span.name,
        startMs: span.startMs,
        endMs: span.endMs,
        ...(error !== undefined && { error }),
      })),
    );
  }
}

/** A function that adds another process's steps to the active trace; undefined outside of a trace. */
export function adopter(): ((steps: readonly RemoteStep[]) => void) | undefined {
  const trace = active.getStore()?.trace;
  if (!trace || trace.isOver) return undefined;
  return steps => {
    if (trace.isOver) return;
    for (const { error, ...span } of steps) {
      trace.steps.push({ name: span.name, durationMs: span.endMs - span.startMs });
      if (trace.spans && trace.spans.length < spansMax)
        trace.spans.push({ ...span, traceId: trace.traceId, kind: 'internal', attributes: {}, error });
    }
  };
}

/** Version 00, and what later versions must keep of it. Source: W3C Trace Context, section 3.2. */
export function parseTraceparent(
  text: string | null,
): { traceId: string; spanId: string; isRecorded: boolean } | undefined {
  const [, version, traceId, spanId, flags, rest] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(text ?? '') ?? [];
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === 'ff' || (version === '00' && rest !== undefined) || /^0+$/.test(traceId) || /^0+$/.test(spanId))
    return undefined;
  return { traceId, spanId, isRecorded: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The trace ID decides, so that all processes that share it come to the same result. */
function isChosen(traceId: string, ratio: number): boolean {
  return Number.parseInt(traceId.slice(-13), 16) / 2 ** 52 < ratio;
}

function codeOf(error: unknown): string {
  return error instanceof AtollError ? error.code : 'internal';
}

/** Epoch milliseconds with fractions. */
function now(): number {
  return performance.timeOrigin + performance.now();
}

function newSpanId(): string {
  return randomHex(8);
}
