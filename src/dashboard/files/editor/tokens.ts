/** The syntactic kind of a part of a program, which determines its colour. */
export type TokenKind = 'comment' | 'string' | 'number' | 'keyword';

/** A part of a text, from character to character. */
type Token = { kind: TokenKind; from: number; to: number };

/** Longer texts get no colours: they are scanned again at each key. */
const charactersMax = 262_144;
const tokensMax = 20_000;

const cKeywords =
  'abstract as async await break case catch class const continue default defer delete do else enum export extends ' +
  'false final finally fn for from func function go if impl implements import in instanceof interface let match mod ' +
  'mut new nil null of package private protected pub public range readonly return satisfies select self static ' +
  'struct super switch this throw throws trait true try type typeof undefined use var void where while yield';
const hashKeywords =
  'and as assert async await begin break case class continue def del do done elif else elsif end esac except export ' +
  'false False fi finally for from function global if import in is lambda local match module None nonlocal not null ' +
  'or pass raise require rescue return select self set then true True try unless until when while with yield ' +
  'ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM LABEL RUN SHELL USER VOLUME WORKDIR';
const sqlKeywords =
  'alter and as asc between by case create delete desc distinct drop else end exists from group having in index ' +
  'insert into is join left like limit not null on or order outer primary references select set table then union ' +
  'unique update values view when where with';

const double = /"(?:[^"\\\n]|\\.)*"?/.source;
const single = /'(?:[^'\\\n]|\\.)*'?/.source;
const back = /`(?:[^`\\]|\\[^])*`?/.source;
const number = /\b(?:0x[\da-f_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)\b/.source;
const block = /\/\*[^]*?(?:\*\/|$)/.source;

const words = (text: string) => `(?<![\\w$.-])(?:${text.replaceAll(' ', '|')})(?![\\w$-])`;
const rule = (comment: string, string: string, keyword: string, flags = '') =>
  new RegExp(`(?<comment>${comment})|(?<string>${string})|(?<number>${number})|(?<keyword>${keyword})`, `g${flags}`);

const families = {
  c: rule(`\\/\\/[^\\n]*|${block}`, [double, single, back].join('|'), words(cKeywords)),
  hash: rule(
    /(?<![^\s;])#[^\n]*/.source,
    [/"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)/.source, double, single].join('|'),
    words(hashKeywords),
  ),
  sql: rule(`--[^\\n]*|${block}`, `${single}|${double}`, words(sqlKeywords), 'i'),
  markup: rule(/<!--[^]*?(?:-->|$)/.source, double, /<\/?[\w:-]+|\/?>/.source),
  text: rule(/(?<=^|\n)>[^\n]*/.source, /`[^`\n]+`/.source, /(?<=^|\n)#{1,6} [^\n]*/.source),
};
type Family = keyof typeof families;

const endings: Record<Family, string> = {
  c: 'c cc cpp cs css go h hpp java js json jsonc jsx kt less mjs cjs mts php rs scala scss swift ts tsx',
  hash: 'bash cfg conf dockerfile env ini makefile pl properties py rb sh toml yaml yml zsh r',
  sql: 'sql lua',
  markup: 'htm html svg vue xml',
  text: 'md markdown',
};
const familyOf = new Map(
  Object.entries(endings).flatMap(([family, names]) => names.split(' ').map(name => [name, family as Family] as const)),
);

/** The coloured parts of a file's text, by the file's extension; none if its language is unknown. */
export function tokensOf(path: string, text: string): Token[] {
  const name = path.slice(path.lastIndexOf('/') + 1).toLowerCase();
  const family = familyOf.get(name.slice(name.lastIndexOf('.') + 1));
  if (!family || text.length > charactersMax) return [];
  const tokens: Token[] = [];
  for (const { groups = {}, index, 0: all } of text.matchAll(families[family])) {
    const [kind] = Object.entries(groups).find(([, part]) => part !== undefined) ?? [];
    if (kind !== undefined) tokens.push({ kind: kind as TokenKind, from: index, to: index + all.length });
    if (tokens.length >= tokensMax) break;
  }
  return tokens;
}
