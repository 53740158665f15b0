/**
 * A body that is JSON already, such as a text of the database, and is sent unchanged. `T`: the type that it is the JSON
 * of.
 */
export class JsonText<T> {
  readonly text: string;
  /** The value of the text, which each call parses again. */
  readonly parsed = (): T => JSON.parse(this.text) as T;
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * The value of a JSON text; undefined, which no JSON means, where it is not JSON. For others' texts, and for files that
 * a loss of power may have cut off.
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // the engine's text about the place of the error helps nobody: the caller knows whose text it is
  }
}
