import { describe, expect, test } from 'bun:test';
import { closeSync, openSync, readdirSync } from 'node:fs';
import { OptionalKind, type TSchema } from '@sinclair/typebox';
import { silentLog } from '../../src/base/telemetry/log.ts';
import { type Caller, methodsOf } from '../../src/protocol/wire/method.ts';
import { buildTable, nodeTable } from '../../src/protocol/wire/node-table.ts';
import { callsOn } from '../../src/wire/call.ts';
import { type CheckedMethod, checkedMethods } from '../../src/wire/checked.ts';
import { memoryChannels } from './support/memory.ts';
import { machineTable } from '../../src/wire/node-service.ts';
import { serve } from '../../src/wire/serve.ts';
import { wrongOf, sampleOf } from './support/samples.ts';

const table = { node: nodeTable, builds: buildTable };
const methods = checkedMethods(table);
const callers: Caller[] = ['api', 'edge'];
const all = methodsOf(table);

/** Answers every call with a sample that fits its schema, or with `answer`. */
function servedTo(caller: Caller, answer?: (name: string) => unknown) {
  const [left, right] = memoryChannels();
  const called: string[] = [];
  const implementation: Record<string, unknown> = {};
  for (const [name, { result, passes }] of all) {
    const path = name.split('.');
    const last = path.pop() ?? '';
    const owner = path.reduce<Record<string, unknown>>(
      (object, part) => (object[part] ??= {}) as Record<string, unknown>,
      implementation,
    );
    owner[last] = async () => (called.push(name), answer ? answer(name) : withFile(sampleOf(result), passes));
  }
  serve(right, caller, { methods, implementation, log: silentLog });
  return { called, channel: left, calls: callsOn(left, 'node', () => {}) };
}

const withFile = (answer: unknown, passes: 'whole' | 'member' | undefined) => {
  if (passes === undefined) return answer;
  const file = openSync('/dev/null', 'r');
  return passes === 'whole' ? file : { ...(answer as object), descriptor: file };
};

const method = (name: string): CheckedMethod => methods.get(name) ?? failure(`no method ${name}`);
const failure = (text: string): never => {
  throw new Error(text);
};
const argsOf = (params: readonly TSchema[]) => params.map(sampleOf);
const openFiles = () => readdirSync('/proc/self/fd').length;

/** Sends what the calling side would refuse itself. */
function callUnchecked(checked: CheckedMethod): CheckedMethod {
  return { ...checked, args: args => [...args] };
}

test('the tables have every method of the node, its volumes and its builds', () => {
  expect(all.length).toBeGreaterThanOrEqual(36);
  expect(new Set(all.map(([name]) => name)).size).toBe(all.length);
});

test('what a call begins, and a later one ends, belongs to the caller’s connection', () => {
  const beginning = methodsOf(machineTable).filter(([, { result }]) => 'writeId' in (result['properties'] ?? {}));
  expect(beginning.length).toBeGreaterThanOrEqual(7);
  const known = checkedMethods(machineTable);
  for (const [name] of beginning) {
    const drop = known.get(name)?.droppedBy ?? '';
    expect([name, drop, known.get(drop)?.argsMax]).toEqual([name, name.replace('openWrite', 'dropWrite'), 1]);
  }
});

test('what may be kept is named by digests', () => {
  const keep = [`sha256:${'a'.repeat(64)}`];
  expect(method('builds.collect').args([keep])).toEqual([keep]);
});

describe.each(all)('%s', (name, described) => {
  test('is carried out for who may call it, and for nobody else', async () => {
    expect(described.callers.length).toBeGreaterThan(0);
    for (const caller of callers) {
      const { calls, called } = servedTo(caller);
      const outcome = await calls.call(method(name), argsOf(described.params)).then(
        value => ({ value }),
        (error: { code: string }) => ({ code: error.code }),
      );
      if (described.callers.includes(caller)) {
        expect(outcome).not.toHaveProperty('code');
        expect(called).toEqual([name]);
      } else {
        expect(outcome).toMatchObject({ code: 'forbidden' });
        expect(called).toEqual([]);
      }
      const file = 'value' in outcome && described.passes !== undefined ? fileIn(outcome.value) : undefined;
      if (file !== undefined) closeSync(file);
    }
  });

  test('is refused with arguments that its schemas do not describe, on both sides', async () => {
    const [caller] = described.callers as [Caller];
    const args = argsOf(described.params);
    const wrongs: unknown[][] = [[...args, 'one too many']];
    for (const [index, schema] of described.params.entries()) {
      for (const wrong of wrongOf(schema)) wrongs.push(args.with(index, wrong));
      if (!(OptionalKind in schema)) wrongs.push(args.slice(0, index));
    }
    for (const wrong of wrongs) {
      const { calls, called } = servedTo(caller);
      await expect(calls.call(method(name), wrong)).rejects.toMatchObject({ code: 'internal' });
      await expect(calls.call(callUnchecked(method(name)), wrong)).rejects.toMatchObject({ code: 'invalid' });
      expect(called).toEqual([]);
    }
  });

  test('is not believed with an answer that its schema does not describe, on either side', async () => {
    const [caller] = described.callers as [Caller];
    const args = argsOf(described.params);
    const before = openFiles();
    for (const wrong of wrongOf(described.result)) {
      const { calls, called } = servedTo(caller, () => withOwnFile(wrong));
      await expect(calls.call(method(name), args)).rejects.toMatchObject({ code: 'internal' });
      expect(called).toEqual([name]);
      const [left, right] = memoryChannels();
      right.listen({
        message: text => right.send(JSON.stringify({ id: JSON.parse(text).id, result: wrong })),
        closed() {},
      });
      await expect(callsOn(left, 'node', () => {}).call(method(name), args)).rejects.toMatchObject({
        code: 'internal',
      });
    }
    expect(openFiles()).toBe(before);
  });
});

/** An answer that passes a file gets one that the wire may close. */
const withOwnFile = (answer: unknown) =>
  typeof answer === 'object' && answer !== null && 'descriptor' in answer && answer.descriptor === 0
    ? { ...answer, descriptor: openSync('/dev/null', 'r') }
    : answer;
const fileIn = (value: unknown) => (typeof value === 'number' ? value : (value as { descriptor: number }).descriptor);
