import { AtollError } from '../../base/error.ts';
import { parseArguments } from '../terminal/arguments.ts';
import type { Command, Terminal } from '../terminal/command.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';

type Entry = { timestamp: string; level: string; message: string; fields: Record<string, string> };

/** How often a log that is followed is asked for more, milliseconds. */
const pollMs = 500;
/** Entries of one answer. */
const pageMax = 1000;

/** `atoll sandbox logs`: what happened in a sandbox, oldest first. */
export function logsCommand(request: PlatformRequest): Command {
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
      const path = `/sandboxes/${encodeURIComponent(positionals[0] ?? '')}`;
      const read = logReader(request, path, values.level);
      for (;;) {
        // Asked before the log: what an ended sandbox has said is all there.
        const hasEnded = values.follow ? await isGone(request, path) : true;
        for (let page = await read(); page.length > 0; page = await read()) show(terminal, page, values.json ?? false);
        if (hasEnded) return 0;
        await Bun.sleep(pollMs);
      }
    },
  };
}

/**
 * Answers what comes next, page by page. Entries of one millisecond come again with the next page, so they are counted.
 */
function logReader(request: PlatformRequest, path: string, level: string | undefined): () => Promise<Entry[]> {
  let cursorMs = 0;
  let seenAtCursor = 0;
  return async () => {
    const query = new URLSearchParams({ cursor: String(cursorMs), limit: String(pageMax), direction: 'forward' });
    if (level !== undefined) query.set('level', level);
    const { logs } = (await request('GET', `/v2${path}/logs?${query}`)) as { logs: Entry[] };
    const fresh = logs.slice(seenAtCursor);
    const last = logs.at(-1);
    if (last && fresh.length > 0) {
      cursorMs = Date.parse(last.timestamp);
      seenAtCursor = logs.filter(entry => Date.parse(entry.timestamp) === cursorMs).length;
    }
    return fresh;
  };
}

function show(terminal: Terminal, entries: Entry[], isJson: boolean): void {
  const lines = entries.map(entry =>
    isJson ? JSON.stringify(entry) : `${entry.timestamp} ${entry.level.padEnd(5)} ${entry.message}`,
  );
  terminal.out(`${lines.join('\n')}\n`);
}

async function isGone(request: PlatformRequest, path: string): Promise<boolean> {
  return request('GET', path).then(
    () => false,
    (error: unknown) => {
      if (error instanceof AtollError && error.code === 'not_found') return true;
      throw error;
    },
  );
}
