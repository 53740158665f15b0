import type { ProcessConfig } from './config.ts';
import type { EndEvent } from './end-status.ts';
import type { OutputName } from './program.ts';
import type { OutputBudget } from '../journal/budget.ts';
import type { Journal } from '../journal/journal.ts';
import { createMask } from '../journal/mask.ts';
import { OutputLines } from './output-lines.ts';

/** Characters of a command line that go into the log. */
const commandCharactersMax = 1000;

/** Logs the life of one process. */
export type ProcessLog = {
  /** The line splitter of a logged output; undefined if the output is not logged. */
  linesOf(name: OutputName): OutputLines | undefined;
  signalled(number: number): void;
  ended(event: EndEvent): void;
};

/** Facts of a process that its log entries need. */
type ProcessFacts = {
  pid: number;
  config: ProcessConfig;
  tag: string | undefined;
  /** Empty: no longer known. */
  user: string;
  /** The sandbox's environment, whose secrets are masked. */
  environment: Record<string, string>;
  /** Its output is logged. */
  withOutput: boolean;
  /** It already ran when the agent was restarted. */
  adopted?: boolean;
};

/** Logs the start of a process; answers how to log the rest. The environment is never logged. */
export function logProcess(
  journal: Journal,
  budget: OutputBudget,
  { pid, config, tag, user, environment, withOutput, adopted = false }: ProcessFacts,
): ProcessLog {
  const mask = createMask([environment, config.envs]);
  const startedAt = performance.now();
  const command = cut(mask(commandLine(config)));
  const about = { pid: String(pid), ...(tag !== undefined && { tag: mask(tag) }) };
  journal.add('info', 'process', `${adopted ? 'taken over' : 'started'}: ${command}`, {
    event: adopted ? 'takeover' : 'start',
    ...about,
    command,
    ...(user !== '' && { user }),
    ...(config.cwd !== undefined && { cwd: config.cwd }),
  });
  return {
    linesOf(name) {
      // A terminal's output is only half of a dialogue, and shows what people type.
      if (!withOutput || name === 'pty') return undefined;
      return new OutputLines(name, budget, {
        line: text => journal.add('info', 'process', mask(text), { event: name, ...about }),
        dropped: bytes =>
          journal.add(
            'warn',
            'process',
            `${bytes} bytes of ${name} are not in the log: processes wrote too much at a time`,
            { event: 'dropped', bytes: String(bytes), ...about },
          ),
      });
    },
    signalled: number =>
      journal.add('info', 'process', `signal ${number} was sent`, {
        event: 'signal',
        signal: String(number),
        ...about,
      }),
    ended({ exitCode = 0, status, error }) {
      const durationMs = String(Math.round(performance.now() - startedAt));
      const fields = { event: 'end', ...about, exitCode: String(exitCode), status, durationMs };
      journal.add(error === undefined ? 'info' : 'warn', 'process', `ended: ${error ?? status}`, fields, { now: true });
    },
  };
}

/** A shell's script is shown unquoted: that is what people ran. */
function commandLine({ cmd, args }: ProcessConfig): string {
  const options = args.slice(0, -1);
  const isScript =
    /(?:^|\/)(?:ba|da|z)?sh$/.test(cmd) &&
    options.every(arg => /^-[a-z]+$/.test(arg)) &&
    options.at(-1)?.includes('c') === true;
  const script = isScript ? args.at(-1) : undefined;
  return script ?? [cmd, ...args].map(word => (/^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word))).join(' ');
}

const cut = (text: string) =>
  text.length > commandCharactersMax ? `${text.slice(0, commandCharactersMax)}… (${text.length} characters)` : text;
