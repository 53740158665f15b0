/**
 * How a member is stored: unchanged, as 0 or 1, or as JSON text. Each has one form that both databases hold exactly.
 */
type Form = 'plain' | 'flag' | 'json';

/** The migration that adds a column to an existing table. It is never edited, like every migration. */
type Since = {
  /** Its name: a number, which gives its place in the order, and words. */
  readonly migration: `${number}-${string}`;
  readonly type: 'text' | 'integer' | 'bigint';
  /** Its value in earlier rows; absent: null. */
  readonly initial?: string | number;
};

/** A member of a record, and its column. `Changes`: it may change after the row is inserted. */
export type Column<Name extends string, Value, Stored, Changes extends boolean> = {
  readonly name: Name;
  readonly form: Form;
  readonly changes: Changes;
  /** Absent: the table was made with it. */
  readonly since?: Since;
  /** The types in a record and in a row. For the compiler alone: it is never there. */
  readonly types?: { readonly value: Value; readonly stored: Stored };
};

/** The columns of a table, by the members of its records. */
export type Columns = Readonly<Record<string, Column<string, unknown, unknown, boolean>>>;

type StoredFlag<T> = null extends T ? 0 | 1 | null : 0 | 1;
type StoredJson<T> = null extends T ? string | null : string;
type ValueOf<C> = C extends { types?: { value: infer Value } } ? Value : never;
type StoredOf<C> = C extends { types?: { stored: infer Stored } } ? Stored : never;

/** A record, as rules use it. */
export type RecordOf<C extends Columns> = { -readonly [Member in keyof C]: ValueOf<C[Member]> };
/** A row, as queries give and take it. */
type RowOf<C extends Columns> = { [Member in keyof C as C[Member]['name']]: StoredOf<C[Member]> };

/** Begins the definition of a column that is set once. Its form gives the type in records. */
export const column = <const Name extends string>(name: Name, since?: Since) => {
  const own = { name, changes: false, ...(since && { since }) } as const;
  return {
    /** A text or a number. */
    plain: <T extends string | number | null>(): Column<Name, T, T, false> => ({ ...own, form: 'plain' }),
    /** A boolean. */
    flag: <T extends boolean | null = boolean>(): Column<Name, T, StoredFlag<T>, false> => ({ ...own, form: 'flag' }),
    /** Any JSON value. */
    json: <T>(): Column<Name, T, StoredJson<T>, false> => ({ ...own, form: 'json' }),
  };
};

/** A column whose value may change. */
export const changing = <Name extends string, Value, Stored>(
  fixed: Column<Name, Value, Stored, false>,
): Column<Name, Value, Stored, true> => ({ ...fixed, changes: true });

/** Translates between the rows and the records of a table. */
type Mapper<C extends Columns> = {
  recordOf(row: RowOf<C>): RecordOf<C>;
  rowOf(record: RecordOf<C>): RowOf<C>;
  /** The columns of some members. */
  partOf<Member extends keyof C>(part: Pick<RecordOf<C>, Member>): Pick<RowOf<C>, C[Member]['name'] & keyof RowOf<C>>;
};

/** The mapper of a table. It alone writes the columns, so their types hold for whatever it reads. */
export function mapperOf<C extends Columns>(columns: C): Mapper<C> {
  const all = Object.entries(columns);
  // Copies of one object share a shape from the start, so that filling them in is as fast as a literal.
  const empty: Record<string, unknown> = Object.fromEntries(all.map(([member]) => [member, null]));
  const plain = all.filter(([, { form }]) => form === 'plain').map(([member, { name }]) => ({ member, name }));
  const converted = all
    .filter(([, { form }]) => form !== 'plain')
    .map(([member, { name, form }]) => ({ member, name, form }));
  const written = (members: Record<string, unknown>, of: typeof all) =>
    Object.fromEntries(of.map(([member, { name, form }]) => [name, stored(form, members[member])]));
  return {
    recordOf(row) {
      const values = row as Record<string, unknown>;
      const record = { ...empty };
      for (const { member, name } of plain) record[member] = values[name];
      for (const { member, name, form } of converted) record[member] = read(form, values[name]);
      return record as RecordOf<C>;
    },
    rowOf: record => written(record, all) as RowOf<C>,
    partOf: part =>
      written(
        part,
        all.filter(([member]) => member in part),
      ) as never,
  };
}

function read(form: Form, value: unknown): unknown {
  if (form === 'plain' || value === null) return value;
  return form === 'flag' ? value === 1 : JSON.parse(value as string);
}

function stored(form: Form, value: unknown): unknown {
  if (form === 'plain' || value === null) return value;
  return form === 'flag' ? Number(value) : JSON.stringify(value);
}
