import { sandboxLogLevels, type SandboxLogEntry } from '../../protocol/logs.ts';
import { parseJson } from '../../base/json-text.ts';

/** The node bounds an agent's messages again: whoever is root in a sandbox can speak for its agent. */
const messageCharactersMax = 4096;
const fieldsMax = 12;
/** The loggers that agents may name; they can't name the platform's own. */
const loggers = ['agent', 'process', 'filesystem'];

/** A position in an agent's log: the run of the agent, and the number of an entry in it. */
export type AgentPlace = { epoch: string; number: number };

/** An entry with its number in the agent's log. */
type AgentEntry = { number: number; entry: SandboxLogEntry };

/** Reads a line of the agent's stream: the epoch it begins with, or an entry; undefined for anything else. */
export function readAgentLine(text: string, nowMs: number): { epoch: string } | AgentEntry | undefined {
  const line = parse(text);
  if (line === undefined) return undefined;
  const { epoch, n, t, l, logger, message, fields } = line;
  if (typeof epoch === 'string') return /^[0-9a-f-]{1,64}$/.test(epoch) ? { epoch } : undefined;
  const level = typeof l === 'number' ? sandboxLogLevels[l] : undefined;
  if (typeof n !== 'number' || !Number.isSafeInteger(n) || n < 1 || level === undefined || typeof message !== 'string')
    return undefined;
  // However old: an agent that continues from a snapshot reports what it remembers, and the time shows that another
  // sandbox logged it.
  const timestampMs = typeof t === 'number' && t <= nowMs && t >= 0 ? Math.floor(t) : nowMs;
  const known = loggers.find(name => name === logger) ?? 'agent';
  return {
    number: n,
    entry: { timestampMs, level, logger: known, message: plain(message), fields: plainFields(fields) },
  };
}

function parse(text: string): Record<string, unknown> | undefined {
  const value = parseJson(text);
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
}

function plainFields(value: unknown): Record<string, string> {
  if (typeof value !== 'object' || value === null) return {};
  const members = Object.entries(value).filter(
    (member): member is [string, string] => /^[a-zA-Z]\w{0,39}$/.test(member[0]) && typeof member[1] === 'string',
  );
  return Object.fromEntries(members.slice(0, fieldsMax).map(([name, text]) => [name, plain(text)]));
}

/** Removes what would move the cursor, or do worse, on a terminal that shows the text. */
export function plain(text: string): string {
  return text
    .slice(0, messageCharactersMax)
    .replace(/\u001b(?:\[[0-9;?]{0,40}[ -/]{0,4}[@-~]|\][^\u0007\u001b]{0,400}(?:\u0007|\u001b\\)|[@-Z\\-_])/g, '')
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
    .toWellFormed();
}
