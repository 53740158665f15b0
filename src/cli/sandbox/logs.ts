import { oneOf, parseArguments } from '../terminal/arguments.ts';
import type { Command, Terminal } from '../terminal/command.ts';
import type { PlatformFollow, PlatformRequest } from '../connection/platform-request.ts';
import { partialText } from './partial.ts';

type Entry = { timestamp: string; level: string; message: string; fields: Record<string, string> };

const levels = ['debug', 'info', 'warn', 'error'] as const;

/** Entries per answer. */
const pageMax = 1000;

/** `atoll sandbox logs`: what happened in a sandbox, oldest first. */
export function logsCommand(request: PlatformRequest, follow: PlatformFollow): Command {
  return {
    name: 'sandbox logs',
    usage: '[--follow] [--level LEVEL] [--json] SANDBOX_ID',
    summary: 'Shows the log of a sandbox, also of one that is gone; --follow goes on until it ends',
    async run(args, terminal) {
      const { values, positionals } = parseArguments(
        args,
        { follow: { type: 'boolean', short: 'f' }, level: { type: 'string' }, json: { type: 'boolean' } },
        ['SANDBOX_ID'],
      );
      const path = `/sandboxes/${encodeURIComponent(positionals[0] ?? '')}/logs`;
      const level: Record<string, string> =
        values.level === undefined ? {} : { level: oneOf('--level', values.level, levels) };
      const entries = values.follow
        ? (follow(`${path}/stream`, { after: '0', ...level }) as AsyncGenerator<Entry>)
        : everything(request, `/v2${path}`, level, () => terminal.err(partialText('log')));
      for await (const entry of entries) show(terminal, entry, values.json ?? false);
      return 0;
    },
  };
}

/** Everything there is, page by page. */
async function* everything(
  request: PlatformRequest,
  path: string,
  level: Record<string, string>,
  onPartial: () => void,
): AsyncGenerator<Entry> {
  for (let cursorMs = 0; ;) {
    const page = { cursor: String(cursorMs), limit: String(pageMax), direction: 'forward', ...level };
    const answer = (await request('GET', `${path}?${new URLSearchParams(page)}`)) as {
      logs: Entry[];
      partial?: boolean;
    };
    const { logs, partial = false } = answer;
    if (partial && cursorMs === 0) onPartial();
    yield* logs;
    const last = logs.at(-1);
    if (!last) return;
    // No two entries share a millisecond.
    cursorMs = Date.parse(last.timestamp) + 1;
  }
}

function show(terminal: Terminal, entry: Entry, isJson: boolean): void {
  const { timestamp, level, message } = entry;
  terminal.out(`${isJson ? JSON.stringify(entry) : `${timestamp} ${level.padEnd(5)} ${message}`}\n`);
}
