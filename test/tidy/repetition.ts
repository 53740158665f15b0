/**
 * Finds repetitions in a regular expression that can begin at many places of a text and fail at each of them only after
 * reading on: `\s+$` starts again at every blank, and reads n²/2 blanks if n of them are followed by something else. So
 * does `\w+=` without an anchor, and two neighbouring repetitions that may take the same characters (`\s*(\d*)\s*-`).
 */
export function slowRepetition(pattern: RegExp): string | undefined {
  const parsed = parse(pattern.source, pattern.ignoreCase, pattern.dotAll);
  return parsed.flatMap(branch => unanchored(branch, pattern.sticky) ?? neighbours(branch) ?? [])[0];
}

/** A piece of a branch: its possible characters, and how often it may occur. */
type Piece = {
  text: string;
  /** All that it may hold. */ set: CharacterSet;
  /** What it may begin with. */ first: CharacterSet;
  min: number;
  max: number;
  branches: Piece[][];
  anchor: '^' | '$' | undefined;
};
/** Latin-1 characters, and whether others may be among them. */
type CharacterSet = { has: boolean[]; others: boolean };

const latin = 256;
/** Repetitions up to this many characters read so little that it does not matter where they begin. */
const fewMax = 1_024;

function setOf(source: string, ignoreCase: boolean): CharacterSet {
  const pattern = new RegExp(`^(?:${source})$`, ignoreCase ? 'i' : '');
  return {
    has: Array.from({ length: latin }, (_, code) => pattern.test(String.fromCharCode(code))),
    others: pattern.test('\u4e2d'),
  };
}

const overlap = (one: CharacterSet, other: CharacterSet) =>
  (one.others && other.others) || one.has.some((has, code) => has && other.has[code]);
const union = (sets: CharacterSet[]): CharacterSet => ({
  has: Array.from({ length: latin }, (_, code) => sets.some(set => set.has[code])),
  others: sets.some(set => set.others),
});

/** Parses the branches of a pattern (ECMAScript; assertions other than ^ and $ are ignored, including lookbehind). */
function parse(source: string, ignoreCase: boolean, dotAll: boolean): Piece[][] {
  let at = 0;
  const branches = (): Piece[][] => {
    const found: Piece[][] = [[]];
    while (at < source.length && source[at] !== ')') {
      if (source[at] === '|') {
        at++;
        found.push([]);
      } else {
        const piece = next();
        if (piece) found.at(-1)?.push(piece);
      }
    }
    return found;
  };
  const next = (): Piece | undefined => {
    const start = at;
    const character = source[at] ?? '';
    let inner: Piece[][] = [];
    let text = '';
    if (character === '^' || character === '$') {
      at++;
      return { text: character, set: union([]), first: union([]), min: 0, max: 0, branches: [], anchor: character };
    }
    if (character === '(') {
      const [head = '('] = /^\((?:\?(?::|<?[=!]|<\w+>))?/.exec(source.slice(at)) ?? [];
      at += head.length;
      inner = branches();
      at++;
      if (/[=!]$/.test(head)) return undefined;
    } else if (character === '[') {
      while (source[++at] !== ']') if (source[at] === '\\') at++;
      text = source.slice(start, ++at);
    } else {
      const escape = /^\\(?:x[\da-f]{2}|u[\da-f]{4}|c[a-z]|p\{[^}]*\}|\d+|[^])/i.exec(source.slice(at))?.[0];
      at += escape?.length ?? 1;
      if (escape !== undefined && /^\\[bB]$/.test(escape)) return undefined;
      text = escape !== undefined && /^\\\d+$/.test(escape) && escape !== '\\0' ? '[^]' : (escape ?? character);
    }
    const set =
      inner.length > 0
        ? union(inner.flat().map(piece => piece.set))
        : setOf(dotAll && text === '.' ? '[^]' : text, ignoreCase);
    const quantifier = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(source.slice(at));
    at += quantifier?.[0].length ?? 0;
    const [least, max] = boundsOf(quantifier);
    // A group that may be empty may be absent.
    const min = inner.some(branch => branch.every(piece => piece.min === 0)) ? 0 : least;
    const first = inner.length > 0 ? union(inner.map(firstOf)) : set;
    return { text: source.slice(start, at), set, first, min, max, branches: inner, anchor: undefined };
  };
  return branches();
}

/** What a branch may begin with: its pieces up to the first mandatory one. */
function firstOf(branch: Piece[]): CharacterSet {
  const end = branch.findIndex(piece => piece.min > 0);
  return union((end < 0 ? branch : branch.slice(0, end + 1)).map(piece => piece.first));
}

function boundsOf(quantifier: RegExpExecArray | null): [min: number, max: number] {
  if (!quantifier) return [1, 1];
  const [text, least, comma, most] = quantifier;
  if (least !== undefined)
    return [Number(least), comma === '' ? Number(least) : most === '' ? Number.POSITIVE_INFINITY : Number(most)];
  return [text.startsWith('+') ? 1 : 0, text.startsWith('?') ? 1 : Number.POSITIVE_INFINITY];
}

/** Whether what follows a piece may fail to match. The end always matches after a piece that takes everything. */
function mayFail(piece: Piece, rest: Piece[]): boolean {
  const takesAll = piece.set.others && piece.set.has.every(Boolean);
  return rest.some(other => other.min > 0 || (other.anchor !== undefined && !takesAll));
}

const isLong = (piece: Piece) => piece.max > fewMax;

/** A long repetition at the beginning of an unanchored branch, followed by something that may fail. */
function unanchored(branch: Piece[], sticky: boolean): string | undefined {
  if (sticky || branch[0]?.anchor === '^') return undefined;
  for (const [index, piece] of branch.entries()) {
    // Anything after it may fail; a repetition that ends the pattern can't, and the next search begins after it.
    const canFail = mayFail(piece, branch.slice(index + 1));
    if (isLong(piece) && canFail) return piece.text;
    for (const inner of piece.branches) {
      const found =
        unanchored(inner, false) ??
        (canFail && inner.every(part => part.min === 0 || isLong(part)) && inner.some(isLong) ? piece.text : undefined);
      if (found !== undefined && (index === 0 || piece.min === 0)) return found;
    }
    // After a mandatory piece that the repetition can't match, it begins only where that piece occurs.
    if (piece.min > 0) {
      const rest = branch.slice(index + 1);
      const again = rest.find(other => isLong(other) && overlap(other.set, piece.set));
      return again !== undefined && mayFail(again, rest.slice(rest.indexOf(again) + 1)) ? again.text : undefined;
    }
  }
  return undefined;
}

/** Two long repetitions without a mandatory piece between them, where the second may match what the first has. */
function neighbours(branch: Piece[]): string | undefined {
  for (const [index, piece] of branch.entries()) {
    for (const inner of piece.branches) {
      const found =
        neighbours(inner) ??
        (isLong(piece) && inner.some(part => isLong(part) && inner.every(other => other === part || other.min === 0))
          ? piece.text
          : undefined);
      if (found !== undefined) return found;
    }
    if (!isLong(piece)) continue;
    for (const [offset, other] of branch.slice(index + 1).entries()) {
      const canFail = mayFail(other, branch.slice(index + offset + 2));
      if (isLong(other) && canFail && overlap(piece.set, other.first)) return `${piece.text} … ${other.text}`;
      if (other.min > 0 && !overlap(piece.set, other.set)) break;
    }
  }
  return undefined;
}
