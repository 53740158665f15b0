/** A body that is JSON already, such as texts of the database: it is sent as it is. `T`: what it is the JSON of. */
export class JsonText<T> {
  readonly text: string;
  /** What the text means; parses it at each call. */
  readonly parsed = (): T => JSON.parse(this.text) as T;
  constructor(text: string) {
    this.text = text;
  }
}
