import { AtollError } from '../base/error.ts';
import { commandLineDetail, parseArguments } from './terminal/arguments.ts';
import type { Command } from './terminal/command.ts';
import type { PlatformList } from './connection/platform-request.ts';

/** The command that the shell calls each time, with the words so far, the last one unfinished. */
const completeWord = '__complete';

/** A word that ends in a colon continues with a path; where nothing is known, files are completed. */
const scripts: Record<string, string> = {
  bash: `_atoll() {
  local IFS=$'\\n'
  COMPREPLY=($(atoll ${completeWord} -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [[ \${COMPREPLY[0]} == *: ]] && compopt -o nospace
}
complete -o default -F _atoll atoll
`,
  zsh: `#compdef atoll
_atoll() {
  local -a found
  found=(\${(f)"$(atoll ${completeWord} -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( ! $#found )); then _files; return; fi
  compadd -S '' -- \${(M)found:#*:}
  compadd -- \${found:#*:}
}
compdef _atoll atoll
`,
  fish: `function __atoll_complete
  set -l found (atoll ${completeWord} -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  if set -q found[1]
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c atoll -f -a '(__atoll_complete)'
`,
};

/** `atoll completion`: prints what a shell needs to complete commands, options, and names of existing things. */
export function completionCommands(commands: () => Command[], list: PlatformList): Command[] {
  return [
    {
      name: 'completion',
      usage: 'bash|zsh|fish',
      summary: 'Prints the completion for a shell, e.g. for `source <(atoll completion bash)`',
      async run(args, terminal) {
        const { positionals } = parseArguments(args, {}, ['SHELL']);
        const script = scripts[positionals[0] ?? ''];
        if (script === undefined)
          throw new AtollError('invalid', `There is completion for ${Object.keys(scripts).join(', ')}.`, {
            detail: commandLineDetail,
          });
        terminal.out(script);
        return 0;
      },
    },
    {
      name: completeWord,
      usage: '',
      summary: '',
      async run(args, terminal) {
        const words = args[0] === '--' ? args.slice(1) : args;
        const found = await candidates(commands(), words, operand => namesOf(operand, list));
        if (found.length > 0) terminal.out(`${found.join('\n')}\n`);
        return 0;
      },
    },
  ];
}

/** Completions of the last word: a word of a command's name, an option, or a name that its next operand takes. */
async function candidates(
  commands: Command[],
  words: string[],
  names: (operand: string) => Promise<string[]>,
): Promise<string[]> {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? '';
  const [first, ...behind] = before;
  if (first === 'help') return chosen(ofNames(commands, behind), current);
  // Both exist: `atoll node` runs one, and `atoll node list` lists them.
  const command = commands
    .filter(({ name }) => name.split(' ').every((word, index) => before[index] === word))
    .toSorted((a, b) => b.name.length - a.name.length)[0];
  const found = [
    ...ofNames(commands, before),
    ...(first === undefined ? ['help'] : []),
    ...(command ? await ofCommand(command, before, current, names) : []),
  ];
  return chosen(found, current);
}

const chosen = (found: string[], current: string) => found.filter(word => word.startsWith(current)).toSorted();

function ofNames(commands: Command[], before: string[]): string[] {
  const next = commands
    .map(({ name }) => name.split(' '))
    .filter(own => before.every((word, index) => own[index] === word))
    .map(own => own[before.length] ?? '');
  return [...new Set(next)].filter(word => word !== '' && word !== completeWord);
}

async function ofCommand(
  { name, usage }: Command,
  before: string[],
  current: string,
  names: (operand: string) => Promise<string[]>,
): Promise<string[]> {
  const values = valuesOf(usage);
  const given = before.slice(name.split(' ').length);
  const value = values.get(given.at(-1) ?? '');
  if (value !== undefined) return names(value);
  if (current.startsWith('-')) return usage.match(/--[a-z-]+/g) ?? [];
  const operands = given.filter((word, index) => !word.startsWith('-') && !values.has(given[index - 1] ?? ''));
  const named = operandsOf(usage);
  const repeated = /\.\.\.\]?$/.test(usage) ? (named.at(-1) ?? '') : '';
  return names(named[operands.length] ?? repeated);
}

/** The options of a usage that take a value, with the value's name: `[--mode wait|move] [--json]` has `--mode`. */
function valuesOf(usage: string): Map<string, string> {
  const found = usage.matchAll(/(--[a-z-]+) ([A-Za-z][\w|=]*)/g);
  return new Map([...found].map(([, option = '', value = '']) => [option, value]));
}

/** The operands of a usage, without brackets: `[--json] [TEMPLATE]` has `TEMPLATE`. */
function operandsOf(usage: string): string[] {
  const values = valuesOf(usage);
  let before = '';
  return usage.split(' ').flatMap(word => {
    const plain = word.replace(/[[\]().]/g, '');
    const isOfOption = plain.startsWith('-') || values.has(before);
    before = plain;
    if (isOfOption || plain === '|') return [];
    return plain.includes('|') ? [plain] : (plain.match(/[A-Z_]+/) ?? []);
  });
}

/** Where to find the names that an operand takes, and which members of an item hold them. */
const places: Record<string, { path: string; names: (item: Named) => string[] }> = {
  SANDBOX_ID: { path: '/v2/sandboxes', names: ({ sandboxID = '' }) => [sandboxID] },
  SOURCE: { path: '/v2/sandboxes', names: ({ sandboxID = '' }) => [`${sandboxID}:`] },
  DESTINATION: { path: '/v2/sandboxes', names: ({ sandboxID = '' }) => [`${sandboxID}:`] },
  TEMPLATE: { path: '/v2/templates', names: ({ aliases = [] }) => aliases },
  VOLUME: { path: '/volumes', names: ({ name = '' }) => [name] },
  SECRET: { path: '/secrets', names: ({ name = '' }) => [name] },
  WEBHOOK_ID: { path: '/events/webhooks', names: ({ id = '' }) => [id] },
};

type Named = { sandboxID?: string; aliases?: string[]; name?: string; id?: string };

async function namesOf(operand: string, list: PlatformList): Promise<string[]> {
  if (operand.includes('|')) return operand.split('|');
  const place = places[operand];
  return place ? ((await list(place.path)) as Named[]).flatMap(place.names) : [];
}
