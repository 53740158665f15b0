/** A literal value in a program: what JSON has, however JavaScript or Python spells it. */
export type Literal = null | boolean | number | string | Literal[] | { [name: string]: Literal };

/** Arguments of a call: the positional and the named ones. */
type Arguments = { plain: Literal[]; named: Record<string, Literal> };

/** Limits: characters of text that are read, and nesting depth of values. */
const [charactersMax, depthMax] = [20_000, 20];

const words: Record<string, null | boolean> = {
  ...{ true: true, True: true, false: false, False: false },
  ...{ null: null, None: null, undefined: null },
};
const escapes: Record<string, string> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', '0': '\0' };

/** Reads once, from left to right. Throws a sentence about what it does not understand. */
class Reader {
  readonly #text: string;
  #at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.#at = at;
  }

  /** Skips white space, and then `mark` if it is next. */
  take(mark: string): boolean {
    this.#skip();
    if (!this.#text.startsWith(mark, this.#at)) return false;
    this.#at += mark.length;
    return true;
  }

  arguments(): Arguments {
    const found: Arguments = { plain: [], named: {} };
    this.#each(')', () => {
      const name = this.#name();
      if (name !== null && this.take('=')) found.named[name] = this.value(1);
      else if (name !== null) found.plain.push(wordOf(name));
      else found.plain.push(this.value(1));
    });
    return found;
  }

  value(depth: number): Literal {
    if (depth > depthMax) throw new Error('It is too deep');
    this.#skip();
    const next = this.#text[this.#at] ?? '';
    if (next === '"' || next === "'" || next === '`') return this.#string(next);
    if (/[-\d.]/.test(next)) return this.#number();
    if (this.take('[')) {
      const list: Literal[] = [];
      this.#each(']', () => list.push(this.value(depth + 1)));
      return list;
    }
    if (this.take('{')) return this.#members(depth);
    const name = this.#name();
    if (name === null) throw new Error(next === '' ? 'It ends too early' : `“${next}” is not understood`);
    return wordOf(name);
  }

  #members(depth: number): Literal {
    const members: [string, Literal][] = [];
    this.#each('}', () => {
      const name = this.#name() ?? this.value(depth + 1);
      if (typeof name !== 'string') throw new Error('A name is no text');
      if (!this.take(':')) throw new Error(`“${name}” has no value`);
      members.push([name, this.value(depth + 1)]);
    });
    return Object.fromEntries(members);
  }

  /** Reads items separated by commas, up to the end mark. */
  #each(end: string, one: () => void): void {
    while (!this.take(end)) {
      one();
      if (this.take(',')) continue;
      if (this.take(end)) return;
      throw new Error(`“${end}” or a comma is missing`);
    }
  }

  #skip(): void {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at++;
  }

  #name(): string | null {
    this.#skip();
    const begin = this.#at;
    if (!/[A-Za-z_$]/.test(this.#text[begin] ?? '')) return null;
    while (/[\w$]/.test(this.#text[this.#at] ?? '')) this.#at++;
    return this.#text.slice(begin, this.#at);
  }

  #number(): number {
    const begin = this.#at;
    while (/[-+.\deE_]/.test(this.#text[this.#at] ?? '')) this.#at++;
    const text = this.#text.slice(begin, this.#at);
    const value = Number(text.replaceAll('_', ''));
    if (!Number.isFinite(value)) throw new Error(`“${text}” is no number`);
    return value;
  }

  #string(quote: string): string {
    let value = '';
    for (this.#at++; this.#at < this.#text.length; this.#at++) {
      const next = this.#text[this.#at] ?? '';
      if (next === quote) {
        this.#at++;
        return value;
      }
      if (next !== '\\') value += next;
      else value += this.#escape();
    }
    throw new Error('A text does not end');
  }

  #escape(): string {
    this.#at++;
    const kind = this.#text[this.#at] ?? '';
    if (kind !== 'u' && kind !== 'x') return escapes[kind] ?? kind;
    const digits = this.#text.slice(this.#at + 1, this.#at + (kind === 'u' ? 5 : 3));
    if (!/^[\da-f]+$/i.test(digits)) throw new Error('An escape is not understood');
    this.#at += digits.length;
    return String.fromCharCode(Number.parseInt(digits, 16));
  }
}

function wordOf(name: string): Literal {
  const value = words[name];
  if (value === undefined) throw new Error(`“${name}” is not understood: only values may stand here`);
  return value;
}

/**
 * Reads the arguments of the first call of `callee` in a JavaScript or Python program. They must be literal values: no
 * names, no sums. Throws an error with a sentence for the author.
 */
export function readCall(program: string, callee: string): Arguments {
  if (program.length > charactersMax) throw new Error('It is too long');
  const at = program.indexOf(`${callee}(`);
  if (at < 0) throw new Error(`There is no ${callee}(…)`);
  return new Reader(program, at + callee.length + 1).arguments();
}
