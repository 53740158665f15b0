import type { SandboxLogEntry } from '../../../../protocol/api/sandbox-logs.ts';
import { sandboxLogPageMax } from '../../../../protocol/logs.ts';
import { askJson } from '../../../api/client.ts';
import type { Query } from '../../../api/client.ts';

/** Most entries in a file: a program reads longer logs page by page. */
export const wholeLogEntriesMax = 100_000;

type Whole = { sandboxId: string; team: string; filter: Query; matches: (entry: SandboxLogEntry) => boolean };

/** A line of a log in a file. */
const lineOf = ({ timestamp, level, fields, message }: SandboxLogEntry): string =>
  `${timestamp} ${level} ${fields['logger'] ?? ''} ${message.replaceAll('\n', '\\n')}`;

/** All matching entries of a sandbox's log as text, the oldest first; `isCut`: only the beginning of a longer log. */
export async function wholeLog(whole: Whole): Promise<{ text: string; isCut: boolean }> {
  const { sandboxId, team, filter, matches } = whole;
  const lines: string[] = [];
  let cursor = 0;
  let isCut = true;
  for (let read = 0; read < wholeLogEntriesMax;) {
    const { logs } = await askJson<{ logs: SandboxLogEntry[] }>(`/v2/sandboxes/${encodeURIComponent(sandboxId)}/logs`, {
      team,
      query: { ...filter, cursor, direction: 'forward', limit: sandboxLogPageMax },
    });
    lines.push(...logs.filter(matches).map(lineOf));
    const last = logs.at(-1);
    isCut = last !== undefined && logs.length >= sandboxLogPageMax;
    if (!last || !isCut) break;
    read += logs.length;
    // No two entries of a sandbox have the same time.
    cursor = Date.parse(last.timestamp) + 1;
  }
  const cut = isCut ? ['# There is more: read it by a program, page by page'] : [];
  return { text: [...lines, ...cut].map(line => `${line}\n`).join(''), isCut };
}
