/** A body that is JSON already, such as texts of the database: it is sent as it is. `T`: what it is the JSON of. */
export class JsonText<T> {
  readonly text: string;
  /** What the text means; parses it at each call. */
  readonly parsed = (): T => JSON.parse(this.text) as T;
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * What a text is the JSON of; undefined, which no JSON means, where it is none. For texts of others, and for files that
 * a loss of power may have cut off.
 */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // the engine's text of where it went wrong helps nobody: whoever asked knows whose text it is
  }
}
