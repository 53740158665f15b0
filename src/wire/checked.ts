import type { TSchema } from '@sinclair/typebox';
import { Kind, OptionalKind } from '@sinclair/typebox';
import { TypeCompiler } from '@sinclair/typebox/compiler';
import { type AnyTable, type Caller, type Method, methodsOf } from '../protocol/wire/method.ts';
import { exactly } from './exact.ts';

/** Looks at a value: answers it without what the schema doesn't name, or the first thing that is wrong with it. */
export type Check = (value: unknown) => { value: unknown } | { wrong: string };

/** A method, with what its messages are looked at with. */
export type CheckedMethod = {
  name: string;
  callers: readonly Caller[];
  deadlineMs: number;
  passes: Method['passes'];
  /** Of the list of arguments. */
  args: (args: readonly unknown[]) => { value: unknown[] } | { wrong: string };
  /** Of the answer, without the file that it passes. */
  result: Check;
  argsMax: number;
};

/** What the methods of a table are called by, each ready to be checked. */
export function checkedMethods(table: AnyTable): ReadonlyMap<string, CheckedMethod> {
  return new Map(methodsOf(table).map(([name, method]) => [name, checked(name, method)]));
}

function checked(name: string, { params, result, callers, deadlineMs, passes }: Method): CheckedMethod {
  const checks = params.map(schema => ({ check: checkOf(schema), isOptional: OptionalKind in schema }));
  return {
    name,
    callers,
    deadlineMs,
    passes,
    argsMax: params.length,
    result: checkOf(result),
    args(args) {
      if (args.length > checks.length) return { wrong: `${args.length} arguments instead of ${checks.length}` };
      const value: unknown[] = [];
      for (const [index, { check, isOptional }] of checks.entries()) {
        const arg = args[index];
        if (arg === undefined && isOptional) continue;
        const looked = check(arg);
        if ('wrong' in looked) return { wrong: `argument ${index + 1}${looked.wrong}` };
        value[index] = looked.value;
      }
      return { value };
    },
  };
}

function checkOf(schema: TSchema): Check {
  // A function that promises nothing may return what it likes: nothing of it is sent.
  if (schema[Kind] === 'Void') return () => ({ value: undefined });
  const compiled = TypeCompiler.Compile(schema);
  const exact = exactly(schema);
  return value => {
    if (compiled.Check(value)) return { value: exact(value) };
    const first = compiled.Errors(value).First();
    return { wrong: `${first?.path ?? ''}: ${first?.message ?? 'not as described'}` };
  };
}
