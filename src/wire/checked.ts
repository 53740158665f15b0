import { OptionalKind } from '@sinclair/typebox';
import { type AnyTable, type Caller, type Method, methodsOf } from '../protocol/wire/method.ts';
import { type Read, readerOf, Wrong } from '../protocol/wire/read.ts';

/** A method, with the readers of its messages. */
export type CheckedMethod = {
  name: string;
  callers: readonly Caller[];
  deadlineMs: number;
  passes: Method['passes'];
  /** The full name of the method that drops what this one begins. */
  droppedBy: string | undefined;
  argsMax: number;
  /** Reads the list of arguments. */
  args: (args: readonly unknown[]) => unknown[] | Wrong;
  /** Reads the answer, with the open file in its place. */
  result: Read;
};

/** The methods of a table by their full names, each with its readers. */
export function checkedMethods(table: AnyTable): ReadonlyMap<string, CheckedMethod> {
  return new Map(methodsOf(table).map(([name, method]) => [name, checked(name, method)]));
}

function checked(name: string, { params, result, callers, deadlineMs, passes, droppedBy }: Method): CheckedMethod {
  const readers = params.map(schema => ({ read: readerOf(schema), isOptional: OptionalKind in schema }));
  return {
    name,
    callers,
    deadlineMs,
    passes,
    droppedBy: droppedBy && `${name.slice(0, name.lastIndexOf('.') + 1)}${droppedBy}`,
    argsMax: params.length,
    result: readerOf(result),
    args(args) {
      if (args.length > readers.length) return new Wrong(`${readers.length} arguments at most`);
      const known: unknown[] = [];
      for (const [index, { read, isOptional }] of readers.entries()) {
        const arg = args[index];
        if (arg === undefined && isOptional) continue;
        const value = read(arg);
        if (value instanceof Wrong) return value.within(index);
        known[index] = value;
      }
      return known;
    },
  };
}
