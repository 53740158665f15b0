import { DockerfileParser } from 'dockerfile-ast';
import { AtollError } from '../../../base/error.ts';
import type { DockerInstruction, DockerMount, DockerStage } from '../../../protocol/build.ts';
import { heredocPattern, readLogicalLine } from './logical-line.ts';
import { jsonForm, splitWords, takeFlags } from './words.ts';

/** What says nothing about the file system or how a sandbox starts. */
const ignored = ['LABEL', 'EXPOSE', 'VOLUME', 'HEALTHCHECK', 'STOPSIGNAL', 'MAINTAINER', 'ONBUILD'];

/** Reads a Dockerfile into its stages. Throws `invalid` with the line for what can't be built. */
export function parseDockerfile(source: string): DockerStage[] {
  const file = DockerfileParser.parse(source);
  const lines = source.split(/\r?\n/);
  const escape = file.getEscapeCharacter();
  const stages: DockerStage[] = [];
  const globalArgs: Record<string, string> = {};
  for (const instruction of file.getInstructions()) {
    const { start, end } = instruction.getRange();
    const keyword = instruction.getKeyword();
    const logical = readLogicalLine(lines.slice(start.line, end.line + 1), escape, ['RUN', 'COPY', 'ADD'].includes(keyword));
    const argument = logical.text.trimStart().slice(keyword.length).trim();
    const fail = (why: string): never => {
      throw new AtollError('invalid', `dockerfile: line ${start.line + 1}: ${why}`);
    };
    if (keyword === 'FROM') {
      stages.push(stageOf(argument, { ...globalArgs }, fail));
      continue;
    }
    const stage = stages.at(-1);
    if (!stage) {
      if (keyword !== 'ARG') fail(`${keyword} before the first FROM`);
      for (const { name, value } of argsOf(argument, escape)) if (value !== null) globalArgs[name] = value;
      continue;
    }
    if (ignored.includes(keyword)) continue;
    const place = { line: start.line + 1, text: logical.text.trim() };
    stage.instructions.push(...instructionsOf(keyword, argument, { ...logical, escape, place, fail }));
  }
  if (stages.length === 0) throw new AtollError('invalid', 'dockerfile: has no FROM');
  return stages;
}

type Fail = (why: string) => never;

function stageOf(argument: string, globalArgs: Record<string, string>, fail: Fail): DockerStage {
  const words = splitWords(takeFlags(argument).rest, '\\');
  const [from, as, name] = words;
  if (from === undefined || (words.length !== 1 && (words.length !== 3 || as?.toUpperCase() !== 'AS'))) return fail('FROM needs an image and may have AS and a name');
  return { from, name: name?.toLowerCase() ?? null, globalArgs, instructions: [] };
}

type Parsed = { heredocs: ReturnType<typeof readLogicalLine>['heredocs']; rest: string; escape: string; place: { line: number; text: string }; fail: Fail };

function instructionsOf(keyword: string, argument: string, { heredocs, rest, escape, place, fail }: Parsed): DockerInstruction[] {
  const required = (): string => (argument === '' ? fail(`${keyword} needs an argument`) : argument);
  switch (keyword) {
    case 'ARG':
      return argsOf(required(), escape).map(({ name, value }) => ({ ...place, kind: 'arg', name, value }));
    case 'ENV':
      return [{ ...place, kind: 'env', pairs: pairsOf(required(), escape, fail) }];
    case 'RUN':
      return [runOf(required(), heredocs, rest, place, fail)];
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
      return fail(`${keyword} is not an instruction`);
  }
}

function argsOf(argument: string, escape: string): { name: string; value: string | null }[] {
  return splitWords(argument, escape).map(word => {
    const equals = word.indexOf('=');
    return equals < 0 ? { name: word, value: null } : { name: word.slice(0, equals), value: word.slice(equals + 1) };
  });
}

/** `NAME=value …`, or the old form `NAME value with spaces`. */
function pairsOf(argument: string, escape: string, fail: Fail): [string, string][] {
  const words = splitWords(argument, escape);
  if (!words[0]?.includes('=')) {
    const [, name = '', value] = /^(\S+)\s+([\s\S]*)$/.exec(argument) ?? [];
    return value === undefined ? fail('ENV needs a value') : [[name, value]];
  }
  return words.map(word => {
    const equals = word.indexOf('=');
    return equals < 1 ? fail(`ENV ${word} has no value`) : [word.slice(0, equals), word.slice(equals + 1)];
  });
}

function runOf(argument: string, heredocs: Parsed['heredocs'], following: string, place: Parsed['place'], fail: Fail): DockerInstruction {
  const { flags, rest } = takeFlags(argument);
  for (const flag of flags.keys()) if (flag !== 'mount' && flag !== 'network' && flag !== 'security') fail(`RUN does not know --${flag}`);
  const mounts = (flags.get('mount') ?? []).flatMap(text => mountOf(text, fail));
  const [script] = heredocs;
  // A document alone is a script; with a command beside it, the shell reads it itself.
  const alone = script !== undefined && heredocs.length === 1 && rest.replace(heredocPattern, '').trim() === '';
  const command = alone ? script.content : heredocs.length > 0 ? `${rest}\n${following}\n` : (jsonForm(rest) ?? rest);
  return { ...place, kind: 'run', command, heredocs: alone ? [script] : [], mounts };
}

function mountOf(text: string, fail: Fail): DockerMount[] {
  const options = new Map(text.split(',').map(option => [option.split('=')[0] ?? '', option.slice(option.indexOf('=') + 1)] as const));
  const kind = options.get('type') ?? 'bind';
  const target = options.get('target') ?? options.get('dst') ?? options.get('destination') ?? '';
  if (kind === 'cache' || kind === 'tmpfs') {
    if (!target.startsWith('/')) fail(`--mount=type=${kind} needs an absolute target`);
    return [{ kind, target, id: options.get('id') ?? target }];
  }
  // Optional secrets and agents that nobody provides are simply not there.
  if ((kind === 'secret' || kind === 'ssh') && options.get('required') !== 'true') return [];
  return fail(`--mount=type=${kind} is not supported; there are cache and tmpfs`);
}

function copyOf(keyword: string, argument: string, heredocs: Parsed['heredocs'], { escape, place, fail }: Pick<Parsed, 'escape' | 'place' | 'fail'>): DockerInstruction[] {
  const { flags, rest } = takeFlags(argument);
  const flag = (name: string) => flags.get(name)?.at(-1) ?? '';
  const words = jsonForm(rest) ?? splitWords(rest, escape);
  const destination = words.at(-1);
  if (words.length < 2 || destination === undefined) return fail(`${keyword} needs a source and a destination`);
  const owners = { destination, chown: flag('chown'), chmod: flag('chmod') };
  const sources = words.slice(0, -1).filter(word => !/^<<-?["']?[A-Za-z_]/.test(word));
  if (sources.some(source => /^(https?:|git@)/.test(source))) fail(`${keyword} of an address is not supported; use RUN with curl or git`);
  const copies: DockerInstruction[] = sources.length > 0 ? [{ ...place, kind: 'copy', from: flag('from'), sources, ...owners }] : [];
  return heredocs.length > 0 ? [...copies, { ...place, kind: 'write', files: heredocs, ...owners }] : copies;
}
