import type { HeaderRules, Wish } from './code.ts';
import { readCall } from './read-literal.ts';
import type { Literal } from './read-literal.ts';

type Members = Record<string, Literal>;

/** Takes members one by one, and knows at the end which ones nobody took. */
function taker(members: Members) {
  const left = new Map(Object.entries(members).filter(([, value]) => value !== null));
  const take = (name: string): Literal | undefined => {
    const value = left.get(name);
    left.delete(name);
    return value;
  };
  const wrong = (name: string, what: string): never => {
    throw new Error(`${name} is no ${what}`);
  };
  return {
    text: (name: string, missing: string) => {
      const value = take(name) ?? missing;
      return typeof value === 'string' ? value : wrong(name, 'text');
    },
    number: (name: string, missing: number) => {
      const value = take(name) ?? missing;
      return typeof value === 'number' ? value : wrong(name, 'number');
    },
    flag: (name: string, missing: boolean) => {
      const value = take(name) ?? missing;
      return typeof value === 'boolean' ? value : wrong(name, 'true or false');
    },
    texts: (name: string): string[] => {
      const value = take(name) ?? [];
      return Array.isArray(value) && value.every(one => typeof one === 'string')
        ? (value as string[])
        : wrong(name, 'list of texts');
    },
    members: (name: string): Members => {
      const value = take(name) ?? {};
      return isMembers(value) ? value : wrong(name, 'object');
    },
    list: (name: string): Literal[] => {
      const value = take(name) ?? [];
      return Array.isArray(value) ? value : wrong(name, 'list');
    },
    /** Throws if anything is left that this form has no place for. */
    end() {
      const [name] = left.keys();
      if (name !== undefined) throw new Error(`This form has nothing for ${name}: use the program itself`);
    },
  };
}

const isMembers = (value: Literal): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Members that must all be texts. */
function textsOf(members: Members, what: string): Record<string, string> {
  for (const [name, value] of Object.entries(members))
    if (typeof value !== 'string') throw new Error(`${what}.${name} is no text`);
  return members as Record<string, string>;
}

function rulesOf(members: Members): HeaderRules {
  return Object.fromEntries(
    Object.entries(members).map(([host, list]) => {
      const [rule] = Array.isArray(list) ? list : [];
      if (!Array.isArray(list) || list.length !== 1 || rule === undefined || !isMembers(rule))
        throw new Error(`rules.${host} is no list of one rule`);
      const of = taker(rule);
      const transform = taker(of.members('transform'));
      of.end();
      const headers = textsOf(transform.members('headers'), 'headers');
      transform.end();
      return [host, headers];
    }),
  );
}

function networkOf(members: Members, [allow, deny]: [string, string]): Pick<Wish, 'allow' | 'deny' | 'rules'> {
  const of = taker(members);
  const network = { allow: of.texts(allow), deny: of.texts(deny), rules: rulesOf(of.members('rules')) };
  of.end();
  return network;
}

function ofJavaScript(text: string): Wish {
  const { plain, named } = readCall(text, 'Sandbox.create');
  const [template = 'base', options = {}] = typeof plain[0] === 'string' ? plain : ['base', plain[0]];
  if (!isMembers(options) || typeof template !== 'string' || Object.keys(named).length > 0)
    throw new Error('Sandbox.create takes a template and options');
  const of = taker(options);
  const lifecycle = taker(of.members('lifecycle'));
  const wish: Wish = {
    template,
    timeoutSeconds: of.number('timeoutMs', 300_000) / 1000,
    metadata: textsOf(of.members('metadata'), 'metadata'),
    env: textsOf(of.members('envs'), 'envs'),
    internet: of.flag('allowInternetAccess', true),
    ...networkOf(of.members('network'), ['allowOut', 'denyOut']),
    volumes: textsOf(of.members('volumeMounts'), 'volumeMounts'),
    pauseAtEnd: lifecycle.text('onTimeout', 'kill') === 'pause',
  };
  lifecycle.end();
  of.end();
  return wish;
}

function ofPython(text: string): Wish {
  const { plain, named } = readCall(text, 'Sandbox.create');
  const [first] = plain;
  if (plain.length > 1) throw new Error('Sandbox.create takes a template; everything else has a name');
  const of = taker({ ...named, ...(first !== undefined && { template: first }) });
  const lifecycle = taker(of.members('lifecycle'));
  const wish: Wish = {
    template: of.text('template', 'base'),
    timeoutSeconds: of.number('timeout', 300),
    metadata: textsOf(of.members('metadata'), 'metadata'),
    env: textsOf(of.members('envs'), 'envs'),
    internet: of.flag('allow_internet_access', true),
    ...networkOf(of.members('network'), ['allow_out', 'deny_out']),
    volumes: textsOf(of.members('volume_mounts'), 'volume_mounts'),
    pauseAtEnd: lifecycle.text('on_timeout', 'kill') === 'pause',
  };
  lifecycle.end();
  of.end();
  return wish;
}

/** The request body in a curl command: what stands between the quotes after `-d`. */
function bodyOfCurl(text: string): Members {
  const begin = text.indexOf("-d '");
  const end = text.lastIndexOf("'");
  if (begin < 0 || end < begin + 4) throw new Error("There is no body: -d '…'");
  const value = JSON.parse(text.slice(begin + 4, end).replaceAll(String.raw`'\''`, "'")) as Literal;
  if (!isMembers(value)) throw new Error('The body is no object');
  return value;
}

function ofCurl(text: string): Wish {
  const of = taker(bodyOfCurl(text));
  of.flag('secure', true);
  const mounts = of.list('volumeMounts').map(mount => {
    const one = taker(isMembers(mount) ? mount : {});
    return [one.text('path', ''), one.text('name', '')];
  });
  const wish: Wish = {
    template: of.text('templateID', 'base'),
    timeoutSeconds: of.number('timeout', 300),
    metadata: textsOf(of.members('metadata'), 'metadata'),
    env: textsOf(of.members('envVars'), 'envVars'),
    internet: of.flag('allow_internet_access', true),
    ...networkOf(of.members('network'), ['allowOut', 'denyOut']),
    volumes: Object.fromEntries(mounts) as Record<string, string>,
    pauseAtEnd: of.flag('autoPause', false),
  };
  of.end();
  return wish;
}

const readers: Record<string, (text: string) => Wish> = { JavaScript: ofJavaScript, Python: ofPython, curl: ofCurl };

/** Reads what a program is to create. Throws an error with a sentence unless it understands all of it. */
export function readCode(language: string, text: string): Wish {
  const wish = readers[language]?.(text);
  if (!wish) throw new Error(`${language} is not read`);
  return wish;
}
