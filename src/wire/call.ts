import { closeSync } from 'node:fs';
import { AtollError } from '../base/error.ts';
import { adopter, traceparent } from '../base/telemetry/trace.ts';
import { lost } from '../protocol/part-lost.ts';
import type { AnyTable } from '../protocol/wire/method.ts';
import { isMethod } from '../protocol/wire/method.ts';
import type { Channel } from './channel.ts';
import type { CheckedMethod } from './checked.ts';
import { fromWire } from './error.ts';
import { isWithinFrame } from './frame.ts';
import { readToCaller, type ToCaller } from './message.ts';
import { Wrong } from '../protocol/wire/read.ts';

type Waiting = {
  method: CheckedMethod;
  adopt: ReturnType<typeof adopter>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
};

/** The calling side of a channel. */
export type Calls = {
  /**
   * Calls a method. Errors: those that it throws; `unavailable` with the detail `part_lost`; `deadline_exceeded`;
   * `canceled`.
   */
  call(method: CheckedMethod, args: readonly unknown[], signal?: AbortSignal): Promise<unknown>;
};

/** Calls the methods that the other side of a channel serves. `part`: its name, for messages. */
export function callsOn(channel: Channel, part: string, onClosed: () => void): Calls {
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  let answers = 0;
  let open = true;
  channel.listen({
    message(text, file) {
      // One answer for each call: a sender of more could make us read without end.
      const message = ++answers > lastId ? undefined : readToCaller(text);
      if (!message) {
        if (file !== undefined) closeSync(file);
        return channel.close();
      }
      const call = waiting.get(message.id);
      waiting.delete(message.id);
      // The caller has given up.
      if (!call) return file === undefined ? undefined : closeSync(file);
      settle(call, message, file);
    },
    closed() {
      open = false;
      for (const call of waiting.values()) call.reject(lost(part, 'has ended before it answered'));
      onClosed();
    },
  });

  return {
    call(method, args, signal) {
      if (!open) return Promise.reject(lost(part, 'is not there'));
      const known = method.args(args);
      if (known instanceof Wrong)
        return Promise.reject(
          new AtollError('internal', `${method.name}: argument ${known.path} must be ${known.mustBe}`),
        );
      if (signal?.aborted) return Promise.reject(canceled(signal));
      const [trace, adopt] = [traceparent(), adopter()];
      const id = ++lastId;
      return new Promise((resolve, reject) => {
        const text = JSON.stringify({ id, call: method.name, args: known, ...(adopt && { trace }) });
        if (!isWithinFrame(text)) throw new AtollError('too_large', `What ${method.name} is told is too long`);
        const giveUp = (error: unknown) => {
          waiting.delete(id);
          channel.send(JSON.stringify({ id, cancel: true }));
          end();
          reject(error);
        };
        const onAbort = () => giveUp(canceled(signal));
        const timer = setTimeout(
          () =>
            giveUp(
              new AtollError(
                'deadline_exceeded',
                `The platform's ${part} did not answer ${method.name} within ${method.deadlineMs / 1000} s`,
              ),
            ),
          method.deadlineMs,
        );
        const end = () => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', onAbort);
        };
        signal?.addEventListener('abort', onAbort, { once: true });
        waiting.set(id, {
          method,
          adopt,
          resolve: value => (end(), resolve(value)),
          reject: error => (end(), reject(error)),
        });
        channel.send(text);
      });
    },
  };
}

const canceled = (signal: AbortSignal | undefined) =>
  signal?.reason instanceof AtollError
    ? signal.reason
    : new AtollError('canceled', 'Nobody waits for the answer any more');

function settle({ method, adopt, resolve, reject }: Waiting, message: ToCaller, file: number | undefined): void {
  if (message.steps) adopt?.(message.steps);
  if ('error' in message) {
    if (file !== undefined) closeSync(file);
    return reject(fromWire(message.error));
  }
  const answer = join(method, message.result, file);
  const result = file !== undefined && !method.passes ? new Wrong('without a file') : method.result(answer);
  if (!(result instanceof Wrong)) return resolve(result);
  if (file !== undefined) closeSync(file);
  reject(new AtollError('internal', `${method.name}: the answer${result.path} must be ${result.mustBe}`));
}

/** The answer, with the open file put in its place. */
function join({ passes }: CheckedMethod, result: unknown, file: number | undefined): unknown {
  if (passes === 'whole') return file;
  if (passes === 'member' && typeof result === 'object')
    return { ...result, ...(file !== undefined && { descriptor: file }) };
  return result;
}

/** An object with a function for each method of a table, which calls it. A signal may follow the arguments. */
export function proxyOf<Protocol>(
  table: AnyTable,
  methods: ReadonlyMap<string, CheckedMethod>,
  calls: Calls,
  prefix = '',
): Protocol {
  const entries = Object.entries(table).map(([name, entry]) => {
    if (!isMethod(entry)) return [name, proxyOf(entry, methods, calls, `${prefix}${name}.`)] as const;
    const method = methods.get(`${prefix}${name}`);
    if (!method) throw new Error(`invariant broken: no method ${prefix}${name}`);
    return [name, (...args: unknown[]) => callWith(calls, method, args)] as const;
  });
  return Object.fromEntries(entries) as Protocol;
}

function callWith(calls: Calls, method: CheckedMethod, args: unknown[]): Promise<unknown> {
  const signal = args.at(-1) instanceof AbortSignal ? (args.pop() as AbortSignal) : undefined;
  // Omitted arguments, and an absent signal, may have been passed as undefined.
  while (args.length > 0 && args.at(-1) === undefined) args.pop();
  return calls.call(method, args, signal);
}
