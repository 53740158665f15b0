/** A TypeScript type, as far as it tells which members an object has. */
export type DeclaredType =
  | { kind: 'object'; members: Map<string, DeclaredType> }
  /** A union, an intersection, or the items of a list. */
  | { kind: 'parts'; parts: DeclaredType[] }
  /** The type of a member of another type, by names: `components["schemas"]["Sandbox"]`. */
  | { kind: 'reference'; names: string[] }
  | { kind: 'other' };

/** The interfaces of these names in a file of declarations. */
export function declaredTypes(text: string, names: string[]): Map<string, DeclaredType> {
  return new Map(
    names.map(name => {
      const at = text.indexOf(`interface ${name} {`);
      if (at < 0) throw new Error(`there is no interface ${name}`);
      return [name, new Reader(tokensOf(text, at + `interface ${name} `.length)).type()];
    }),
  );
}

/** The names of all members; those of members' types come after a dot. */
export function fieldsOf(
  type: DeclaredType | undefined,
  types: Map<string, DeclaredType>,
  above: ReadonlySet<string> = new Set(),
): string[] {
  if (type?.kind === 'parts') return [...new Set(type.parts.flatMap(part => fieldsOf(part, types, above)))];
  if (type?.kind === 'reference') {
    const name = type.names.join('.');
    if (above.has(name)) return [];
    return fieldsOf(resolved(type.names, types), types, new Set([...above, name]));
  }
  if (type?.kind !== 'object') return [];
  return [...type.members].flatMap(([name, member]) => [
    name,
    ...fieldsOf(member, types, above).map(field => `${name}.${field}`),
  ]);
}

function resolved([first = '', ...rest]: string[], types: Map<string, DeclaredType>): DeclaredType | undefined {
  let type = types.get(first);
  for (const name of rest) type = type?.kind === 'object' ? type.members.get(name) : undefined;
  return type;
}

const token = /\s+|\/\/.*|\/\*[\s\S]*?\*\/|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\w$]+|[{}[\]();:?,|&<>.=-])/y;

/** Words, texts and punctuation from `at` on, one at a time. */
function* tokensOf(text: string, at: number): Generator<string> {
  token.lastIndex = at;
  for (let found = token.exec(text); found; found = token.exec(text)) if (found[1] !== undefined) yield found[1];
}

class Reader {
  readonly #tokens: Generator<string>;
  #next: string;

  constructor(tokens: Generator<string>) {
    this.#tokens = tokens;
    this.#next = String(tokens.next().value);
  }

  type(): DeclaredType {
    const parts: DeclaredType[] = [];
    do {
      if (this.#next === '|' || this.#next === '&') this.#take();
      parts.push(this.#operand());
    } while (this.#next === '|' || this.#next === '&');
    const [only] = parts;
    return parts.length === 1 && only ? only : { kind: 'parts', parts };
  }

  #is(sign: string): boolean {
    return this.#next === sign;
  }

  #take(expected?: string): string {
    const taken = this.#next;
    if (expected !== undefined && taken !== expected) throw new Error(`expected ${expected}, got ${taken}`);
    this.#next = String(this.#tokens.next().value);
    return taken;
  }

  #operand(): DeclaredType {
    let type = this.#primary();
    while (this.#is('[')) {
      this.#take();
      if (!this.#is(']')) {
        const name = unquoted(this.#take());
        type = type.kind === 'reference' ? { kind: 'reference', names: [...type.names, name] } : { kind: 'other' };
      }
      this.#take(']');
    }
    return type;
  }

  #primary(): DeclaredType {
    if (this.#next === '{') return this.#object();
    if (this.#next === '(') {
      this.#take();
      const type = this.type();
      this.#take(')');
      return type;
    }
    const word = this.#take();
    if (this.#next !== '<') return /^[A-Za-z]/.test(word) ? { kind: 'reference', names: [word] } : { kind: 'other' };
    const parts: DeclaredType[] = [];
    do {
      this.#take();
      parts.push(this.type());
    } while (this.#is(','));
    this.#take('>');
    return { kind: 'parts', parts };
  }

  #object(): DeclaredType {
    const members = new Map<string, DeclaredType>();
    this.#take('{');
    while (this.#next !== '}') {
      if (this.#next === 'readonly') this.#take();
      let name = '*';
      if (this.#next === '[') while (this.#take() !== ']');
      else name = unquoted(this.#take());
      if (this.#next === '?') this.#take();
      this.#take(':');
      members.set(name, this.type());
      this.#take(';');
    }
    this.#take('}');
    return { kind: 'object', members };
  }
}

const unquoted = (text: string) => text.replace(/^["']|["']$/g, '');
