import { closeSync } from 'node:fs';
import { AtollError } from '../base/error.ts';
import type { Log } from '../base/telemetry/log.ts';
import { collected, type RemoteStep } from '../base/telemetry/trace.ts';
import type { Caller } from '../protocol/wire/method.ts';
import { Begun } from './begun.ts';
import type { Channel } from './channel.ts';
import type { CheckedMethod } from './checked.ts';
import { toWire } from './error.ts';
import { isWithinFrame } from './frame.ts';
import { type FromCaller, readFromCaller, type ToCaller } from './message.ts';
import { Wrong } from '../protocol/wire/read.ts';

/** Calls that one caller may have under way: more than any api or edge needs, and few enough to hold. */
export const callsMax = 10_000;

/** Counts the calls that one caller has under way, on all of its connections. */
export class CallBudget {
  #taken = 0;

  /** Takes the place of one more call. Errors: `unavailable` where none is left. */
  take(): void {
    if (this.#taken >= callsMax)
      throw new AtollError('unavailable', `${callsMax} calls are under way, which is the most; try again later`);
    this.#taken++;
  }

  give(): void {
    this.#taken--;
  }
}

/** A table of methods, and the object that implements them. */
export type Served = {
  methods: ReadonlyMap<string, CheckedMethod>;
  /** Has the functions of the table, under the same names. */
  implementation: object;
  log: Log;
  /** Called when the last caller has disconnected. */
  allGone?: () => void;
};

/**
 * Answers the calls on a channel until it closes. `caller`: the verified other side; `budget`: its calls under way on
 * all of its channels.
 */
export function serve(channel: Channel, caller: Caller, served: Served, budget = new CallBudget()): void {
  const underWay = new Map<number, AbortController>();
  const begun = new Begun(served.log);
  channel.listen({
    message(text, file) {
      // No call passes a file.
      if (file !== undefined) closeSync(file);
      const message = readFromCaller(text);
      if (!message) {
        served.log.warn('a message that is none was received; its connection is closed', { caller });
        return channel.close();
      }
      if ('cancel' in message)
        return underWay.get(message.id)?.abort(new AtollError('canceled', 'Nobody waits for the answer any more'));
      if (underWay.has(message.id)) return channel.close();
      void answer(message);
    },
    closed() {
      for (const controller of underWay.values()) controller.abort(new AtollError('canceled', 'The caller is gone'));
      begun.dropAll();
    },
  });

  async function answer(call: Extract<FromCaller, { call: string }>): Promise<void> {
    const { id } = call;
    const controller = new AbortController();
    underWay.set(id, controller);
    const traced: { steps?: RemoteStep[] } = {};
    const work = () => carryOut(served, caller, call, { signal: controller.signal, begun });
    let isCounted = false;
    try {
      budget.take();
      isCounted = true;
      const { result, file } = await (call.trace === undefined
        ? work()
        : collected(call.trace, work, steps => (traced.steps = steps)));
      send({ id, result, ...(file !== undefined && { file: true }), ...traced }, file);
    } catch (error) {
      send({ id, error: toWire(error), ...traced });
    } finally {
      underWay.delete(id);
      if (isCounted) budget.give();
    }
  }

  function send(message: ToCaller, file?: number): void {
    const text = JSON.stringify(message);
    if (isWithinFrame(text)) return channel.send(text, file);
    if (file !== undefined) closeSync(file);
    const { id } = message;
    channel.send(JSON.stringify({ id, error: toWire(new AtollError('too_large', 'The answer is too long')) }));
  }
}

async function carryOut(
  { methods, implementation, log }: Served,
  caller: Caller,
  { call, args }: { call: string; args: unknown[] },
  { signal, begun }: { signal: AbortSignal; begun: Begun },
): Promise<{ result: unknown; file?: number }> {
  const method = methods.get(call);
  if (!method) throw new AtollError('unimplemented', `There is no method ${JSON.stringify(call)}`);
  if (!method.callers.includes(caller)) throw new AtollError('forbidden', `The ${caller} may not call ${call}`);
  const known = method.args(args);
  if (known instanceof Wrong)
    throw new AtollError('invalid', `${call}: argument ${known.path} must be ${known.mustBe}`);
  begun.end(known[0]);
  const answered = await invoke(implementation, method, known, signal);
  const result = method.result(answered);
  if (!(result instanceof Wrong)) {
    const drop = method.droppedBy === undefined ? undefined : methods.get(method.droppedBy);
    // The call that drops something has no caller who could cancel it.
    const dropIt = async (id: string) => drop && invoke(implementation, drop, [id], new AbortController().signal);
    if (drop) begun.add((result as { writeId: string }).writeId, dropIt, !signal.aborted);
    return split(method, result);
  }
  const { file } = split(method, answered);
  if (file !== undefined) closeSync(file);
  log.error('a call was answered with what its schema refuses', { call, path: result.path, mustBe: result.mustBe });
  throw new AtollError('internal', `${call}: the answer${result.path} must be ${result.mustBe}`);
}

/** Calls the function of that name. The signal comes after all arguments, omitted ones included. */
async function invoke(
  implementation: object,
  { name, argsMax }: CheckedMethod,
  args: unknown[],
  signal: AbortSignal,
): Promise<unknown> {
  const path = name.split('.');
  const last = path.pop() ?? '';
  const owner = path.reduce<unknown>(
    (object, part) => (object as Record<string, unknown>)[part],
    implementation,
  ) as Record<string, (...args: unknown[]) => unknown>;
  const placed = Array.from({ length: argsMax }, (_, index) => args[index]);
  // Awaited here: a failing promise must have a handler at once, or the runtime reports it as unhandled.
  return await owner[last]?.(...placed, signal);
}

/** The answer without its open file. */
function split(method: CheckedMethod, answer: unknown): { result: unknown; file?: number } {
  if (method.passes === undefined) return { result: answer };
  if (method.passes === 'whole') return typeof answer === 'number' ? { result: null, file: answer } : { result: null };
  const { descriptor, ...result } = answer as { descriptor?: unknown };
  return typeof descriptor === 'number' ? { result, file: descriptor } : { result };
}
