import { AtollError } from '../base/error.ts';
import { commandLineDetail, parseArguments } from './terminal/arguments.ts';
import type { Command } from './terminal/command.ts';
import type { PlatformList } from './connection/platform-request.ts';

/** What the shell asks for each time: the words so far, the last one unfinished. */
const completeWord = '__complete';

const scripts: Record<string, string> = {
  bash: `_atoll() {
  local IFS=$'\\n'
  COMPREPLY=($(atoll ${completeWord} -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _atoll atoll
`,
  zsh: `#compdef atoll
_atoll() {
  local -a candidates
  candidates=(\${(f)"$(atoll ${completeWord} -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -a candidates || _files
}
compdef _atoll atoll
`,
  fish: `complete -c atoll -f -a '(atoll ${completeWord} -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
};

/** `atoll completion`: what a shell reads to complete commands, options, and names of what is there. */
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

/** What the last word may become: a word of a command's name, an option, or a name that its next operand takes. */
async function candidates(
  commands: Command[],
  words: string[],
  names: (operand: string) => Promise<string[]>,
): Promise<string[]> {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? '';
  const command = commands.find(({ name }) => {
    const own = name.split(' ');
    return own.length <= before.length && own.every((word, index) => before[index] === word);
  });
  const found = command ? await ofCommand(command, before, current, names) : ofNames(commands, before);
  return found.filter(candidate => candidate.startsWith(current)).toSorted();
}

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
  if (current.startsWith('-')) return usage.match(/--[a-z-]+/g) ?? [];
  const operands = operandsOf(usage);
  const given = before.slice(name.split(' ').length).filter(word => !word.startsWith('-'));
  return names(operands[given.length] ?? '');
}

/** The operands of a usage, without brackets: `[--json] [TEMPLATE]` has `TEMPLATE`. */
function operandsOf(usage: string): string[] {
  let isInOption = false;
  return usage.split(' ').flatMap(word => {
    const isOption = isInOption || word.startsWith('[-');
    isInOption = isOption && !word.includes(']');
    return isOption ? [] : (word.match(/[A-Z_]+/) ?? []).slice(0, 1);
  });
}

/** Where the names are that an operand takes, and which members of an item are such. */
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
  const place = places[operand];
  return place ? ((await list(place.path)) as Named[]).flatMap(place.names) : [];
}
