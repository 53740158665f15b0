import type { Static, TOptional, TSchema } from '@sinclair/typebox';

/** Processes that call others over the wire. The table of methods says who may call what. */
export type Caller = 'api' | 'edge';

/** A call from one process to another, as the wire carries it: both sides check arguments and answer. */
export type Method<Args extends readonly unknown[] = readonly unknown[], Result = unknown> = {
  /** One schema for each argument; `Type.Optional` at the end for arguments that may be left out. */
  readonly params: readonly TSchema[];
  readonly result: TSchema;
  readonly callers: readonly Caller[];
  /** Longest wait of the caller, milliseconds. */
  readonly deadlineMs: number;
  /**
   * The answer carries an open file, either as the whole answer or as its member `descriptor`. The receiver owns it.
   */
  readonly passes?: 'whole' | 'member';
  /**
   * The call begins something that the answer's `writeId` names and that another call with that ID ends. It belongs to
   * the caller's connection: if that closes first, the method of this name in the same table is called with the ID.
   */
  readonly droppedBy?: string;
  /** For the compiler alone. */
  readonly types?: { args: Args; result: Result };
};

/** The arguments that a list of schemas describes. */
type ArgsOf<Params extends readonly TSchema[]> = Params extends readonly [
  infer First extends TSchema,
  ...infer Rest extends readonly TSchema[],
]
  ? First extends TOptional<TSchema>
    ? [Static<First>?, ...ArgsOf<Rest>]
    : [Static<First>, ...ArgsOf<Rest>]
  : [];

type MethodOptions = Partial<Pick<Method, 'callers' | 'deadlineMs' | 'passes' | 'droppedBy'>>;

/** Most calls take milliseconds; this allows for a busy machine. Milliseconds. */
const usualDeadlineMs = 60_000;

/** Describes a method. By default only the api may call it, and it answers within a minute. */
export function method<const Params extends readonly TSchema[], Result extends TSchema>(
  params: Params,
  result: Result,
  { callers = ['api'], deadlineMs = usualDeadlineMs, passes, droppedBy }: MethodOptions = {},
): Method<ArgsOf<Params>, Static<Result>> {
  return { params, result, callers, deadlineMs, ...(passes && { passes }), ...(droppedBy && { droppedBy }) };
}

/** An `AbortSignal` does not cross the wire: it becomes a message of its own. */
type WithoutSignal<Args extends readonly unknown[]> =
  Required<Args> extends readonly [...infer Others, AbortSignal] ? Others : Args;

/** A table that has a method for each function of an interface, with its arguments and its answer. */
export type MethodTable<Protocol> = {
  readonly [Name in keyof Protocol]: Protocol[Name] extends (...args: infer Args) => Promise<infer Result>
    ? Method<WithoutSignal<Args>, Result>
    : MethodTable<Protocol[Name]>;
};

/** Any table: methods by name, or tables by name. */
export type AnyTable = { readonly [name: string]: Method | AnyTable };

/** Says whether an entry of a table is a method and not a table. */
export function isMethod(entry: Method | AnyTable): entry is Method {
  return Array.isArray(entry['params']);
}

/** The methods of a table by their full names, e.g. `volumes.create`. */
export function methodsOf(table: AnyTable, prefix = ''): [name: string, method: Method][] {
  return Object.entries(table).flatMap(([name, entry]) =>
    isMethod(entry) ? [[`${prefix}${name}`, entry] as [string, Method]] : methodsOf(entry, `${prefix}${name}.`),
  );
}
