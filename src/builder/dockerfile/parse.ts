import { expandWord } from '../../base/dockerfile/expand.ts';
import { platformArgs } from '../../base/dockerfile/platform-args.ts';
import { AtollError, messageOf } from '../../base/error.ts';
import type { DockerInstruction, DockerMount, DockerStage, Heredoc } from '../../protocol/build.ts';
import { isHeredoc, readInstructions, type Instruction } from './instructions.ts';
import { jsonForm, splitWords, takeFlags } from './words.ts';

/** Instructions that affect neither the file system nor the start of a sandbox. */
const ignored = ['LABEL', 'EXPOSE', 'VOLUME', 'HEALTHCHECK', 'STOPSIGNAL', 'MAINTAINER', 'ONBUILD'];
const stagesMax = 100;
/** Characters of all arguments before the first FROM, names and values: each stage receives them. */
const globalCharactersMax = 128 << 10;

/**
 * Parses a Dockerfile into its stages. `told`: values that override the defaults of arguments before the first FROM.
 * Throws `invalid` with the line for what can't be built.
 */
export function parseDockerfile(source: string, told: Record<string, string> = {}): DockerStage[] {
  const { instructions, escape } = readInstructions(source);
  const stages: DockerStage[] = [];
  const globalArgs: GlobalArgs = { values: {}, characters: 0 };
  for (const instruction of instructions) {
    const { keyword, argument, line } = instruction;
    const fail = (why: string): never => {
      throw new AtollError('invalid', `dockerfile: line ${line}: ${why}`);
    };
    if (keyword === 'FROM') {
      if (stages.length === stagesMax) fail(`there are more than ${stagesMax} stages`);
      const stage = stageOf(argument, { ...globalArgs.values }, fail);
      if (expanded(stage.from, lookUpIn(globalArgs.values, told), fail) === '')
        fail(`FROM ${shown(stage.from)} names nothing: its ARG needs a value before the first FROM`);
      stages.push(stage);
      continue;
    }
    const stage = stages.at(-1);
    if (!stage) {
      if (keyword !== 'ARG') fail(`${shown(keyword)} before the first FROM`);
      for (const arg of argsOf(argument, escape)) addGlobalArg(globalArgs, arg, told, fail);
      continue;
    }
    if (!ignored.includes(keyword)) stage.instructions.push(...instructionsOf(instruction, escape, fail));
  }
  if (stages.length === 0) throw new AtollError('invalid', 'dockerfile: has no FROM');
  return stages;
}

type GlobalArgs = { values: Record<string, string>; characters: number };

/** Keeps an argument before the first FROM; its default may use the preceding ones. */
function addGlobalArg(args: GlobalArgs, { name, value }: Arg, told: Record<string, string>, fail: Fail): void {
  const own = Object.hasOwn(told, name) ? told[name] : undefined;
  const known = own ?? (value === null ? undefined : expanded(value, lookUpIn(args.values), fail));
  if (known === undefined) return;
  args.characters += name.length + known.length;
  if (args.characters > globalCharactersMax)
    fail(`the arguments before the first FROM are longer than ${globalCharactersMax} characters`);
  args.values[name] = known;
}

function lookUpIn(...tables: Record<string, string>[]): (name: string) => string | undefined {
  return wanted => [...tables, platformArgs].find(table => Object.hasOwn(table, wanted))?.[wanted];
}

function expanded(word: string, lookUp: (name: string) => string | undefined, fail: Fail): string {
  try {
    return expandWord(word, lookUp);
  } catch (error) {
    return fail(messageOf(error));
  }
}

function shown(text: string): string {
  return text.slice(0, 100);
}

type Fail = (why: string) => never;

function stageOf(argument: string, globalArgs: Record<string, string>, fail: Fail): DockerStage {
  const words = splitWords(takeFlags(argument).rest, '\\');
  const [from, as, name] = words;
  if (from === undefined || (words.length !== 1 && (words.length !== 3 || as?.toUpperCase() !== 'AS')))
    return fail('FROM needs an image and may have AS and a name');
  return { from, name: name?.toLowerCase() ?? null, globalArgs, instructions: [] };
}

type Place = { line: number; text: string };

function instructionsOf(
  { keyword, argument, line, heredocs, following }: Instruction,
  escape: string,
  fail: Fail,
): DockerInstruction[] {
  const required = (): string => (argument === '' ? fail(`${keyword} needs an argument`) : argument);
  const place: Place = { line, text: `${keyword} ${argument}`.trim() };
  switch (keyword) {
    case 'ARG':
      return argsOf(required(), escape).map(({ name, value }) => ({ ...place, kind: 'arg', name, value }));
    case 'ENV':
      return [{ ...place, kind: 'env', pairs: pairsOf(required(), escape, fail) }];
    case 'RUN':
      return [runOf(required(), heredocs, following, place, fail)];
    case 'COPY':
    case 'ADD':
      return copyOf(keyword, required(), heredocs, { escape, place, fail });
    case 'WORKDIR':
      return [{ ...place, kind: 'workdir', path: required() }];
    case 'USER':
      return [{ ...place, kind: 'user', name: required() }];
    case 'SHELL':
      return [{ ...place, kind: 'shell', argv: jsonForm(required()) ?? fail('SHELL needs a JSON array') }];
    case 'ENTRYPOINT':
    case 'CMD':
      return [{ ...place, kind: keyword === 'CMD' ? 'cmd' : 'entrypoint', command: jsonForm(argument) ?? argument }];
    default:
      return fail(`${shown(keyword)} is not an instruction`);
  }
}

type Arg = { name: string; value: string | null };

function argsOf(argument: string, escape: string): Arg[] {
  return splitWords(argument, escape).map(word => {
    const equals = word.indexOf('=');
    return equals < 0 ? { name: word, value: null } : { name: word.slice(0, equals), value: word.slice(equals + 1) };
  });
}

/** `NAME=value …`, or the old form `NAME value with spaces`. */
function pairsOf(argument: string, escape: string, fail: Fail): [string, string][] {
  const words = splitWords(argument, escape);
  if (!words[0]?.includes('=')) {
    const end = argument.search(/\s/);
    return end < 0 ? fail('ENV needs a value') : [[argument.slice(0, end), argument.slice(end).trimStart()]];
  }
  return words.map(word => {
    const equals = word.indexOf('=');
    return equals < 1 ? fail(`ENV ${shown(word)} has no value`) : [word.slice(0, equals), word.slice(equals + 1)];
  });
}

function runOf(argument: string, heredocs: Heredoc[], following: string, place: Place, fail: Fail): DockerInstruction {
  const { flags, rest } = takeFlags(argument);
  for (const flag of flags.keys())
    if (flag !== 'mount' && flag !== 'network' && flag !== 'security') fail(`RUN does not know --${flag}`);
  const network = flags.get('network')?.at(-1) ?? 'default';
  if (network !== 'none' && network !== 'default')
    fail(`RUN --network=${shown(network)} is not supported: a step has the network of builds, or none`);
  const security = flags.get('security')?.at(-1) ?? 'sandbox';
  if (security !== 'sandbox') fail(`RUN --security=${shown(security)} is not supported: a step runs in a sandbox`);
  const mounts = (flags.get('mount') ?? []).flatMap(text => mountOf(text, fail));
  const [script] = heredocs;
  // A document alone is a script; if there is also a command, the shell reads it itself.
  const alone = script !== undefined && heredocs.length === 1 && isHeredoc(rest.trim());
  const command = alone ? script.content : heredocs.length > 0 ? `${rest}\n${following}\n` : (jsonForm(rest) ?? rest);
  const base = { ...place, kind: 'run', command, heredocs: alone ? [script] : [], mounts } as const;
  return network === 'none' ? { ...base, network } : base;
}

function mountOf(text: string, fail: Fail): DockerMount[] {
  const options = new Map(
    text.split(',').map(option => [option.split('=')[0] ?? '', option.slice(option.indexOf('=') + 1)] as const),
  );
  const kind = options.get('type') ?? 'bind';
  const target = options.get('target') ?? options.get('dst') ?? options.get('destination') ?? '';
  if (kind === 'cache' || kind === 'tmpfs') {
    const path = checkTarget(target, kind, fail);
    for (const name of options.keys())
      if (!mountOptions[kind].includes(name)) fail(`--mount=type=${kind} does not know ${shown(name)}`);
    return [{ kind, target: path, id: options.get('id') ?? path, ...ownerOf(options, fail) }];
  }
  // Optional secrets and agents that nobody provides are simply missing.
  if ((kind === 'secret' || kind === 'ssh') && options.get('required') !== 'true') return [];
  return fail(`--mount=type=${shown(kind)} is not supported; there are cache and tmpfs`);
}

/** Some options change nothing here: commands may write to a cache in any case, and one build at a time uses it. */
const mountOptions = {
  cache: 'type target dst destination id sharing uid gid mode ro readonly rw readwrite'.split(' '),
  tmpfs: 'type target dst destination size'.split(' '),
};

/** The owner and mode that a mount asks for. */
function ownerOf(options: ReadonlyMap<string, string>, fail: Fail): Pick<DockerMount, 'owner' | 'mode'> {
  const number = (name: string, form: RegExp, base: number): number | undefined => {
    const text = options.get(name);
    if (text === undefined) return undefined;
    return form.test(text) ? Number.parseInt(text, base) : fail(`${name}=${shown(text)} of --mount is no number`);
  };
  const [uid, gid] = [number('uid', /^\d{1,9}$/, 10), number('gid', /^\d{1,9}$/, 10)];
  const mode = number('mode', /^0{0,2}[0-7]{1,4}$/, 8);
  return {
    ...((uid ?? gid) !== undefined && { owner: { uid: uid ?? 0, gid: gid ?? 0 } }),
    ...(mode !== undefined && { mode }),
  };
}

const targetCharactersMax = 500;
/** The platform's directories in a sandbox. */
const reserved = ['', '.agent', 'dev', 'proc', 'sys'];

/** A mount's target: a plain absolute path, neither above nor below the platform's own. */
function checkTarget(target: string, kind: string, fail: Fail): string {
  if (!target.startsWith('/')) fail(`--mount=type=${kind} needs an absolute target`);
  if (target.length > targetCharactersMax)
    fail(`the target of --mount=type=${kind} is longer than ${targetCharactersMax} characters`);
  const parts = target.split('/').filter(part => part !== '' && part !== '.');
  if (parts.includes('..')) fail(`the target of --mount=type=${kind} must not have ..`);
  if (/[\0\n]/.test(target) || reserved.includes(parts[0] ?? ''))
    fail(`--mount=type=${kind} can't be shown at ${target}`);
  return `/${parts.join('/')}`;
}

function copyOf(
  keyword: string,
  argument: string,
  heredocs: Heredoc[],
  { escape, place, fail }: { escape: string; place: Place; fail: Fail },
): DockerInstruction[] {
  const { flags, rest } = takeFlags(argument);
  for (const name of flags.keys())
    if (!['from', 'chown', 'chmod', 'link'].includes(name)) fail(`${keyword} does not know --${name}`);
  const flag = (name: string) => flags.get(name)?.at(-1) ?? '';
  const words = jsonForm(rest) ?? splitWords(rest, escape);
  const destination = words.at(-1);
  if (words.length < 2 || destination === undefined) return fail(`${keyword} needs a source and a destination`);
  const owners = { destination, chown: flag('chown'), chmod: flag('chmod') };
  const sources = words.slice(0, -1).filter(word => !isHeredoc(word));
  if (sources.some(source => /^(https?:|git@)/.test(source)))
    fail(`${keyword} of an address is not supported; use RUN with curl or git`);
  const copies: DockerInstruction[] =
    sources.length > 0 ? [{ ...place, kind: 'copy', from: flag('from'), sources, ...owners }] : [];
  return heredocs.length > 0 ? [...copies, { ...place, kind: 'write', files: heredocs, ...owners }] : copies;
}
