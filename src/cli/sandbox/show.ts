import { AtollError } from '../../base/error.ts';
import { commandLineDetail, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import type { Connect } from '../connection/connection.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';
import { jsonText, show } from '../terminal/table.ts';
import { partialText } from './partial.ts';

type Metric = {
  timestamp: string;
  cpuCount: number;
  cpuUsedPct: number;
  memUsed: number;
  memTotal: number;
  diskUsed: number;
  diskTotal: number;
};

/** Commands that show one sandbox. */
export function showCommands(request: PlatformRequest, connect: Connect): Command[] {
  return [
    {
      name: 'sandbox info',
      usage: '[--json] SANDBOX_ID',
      summary: 'Shows what a sandbox is made of, and until when it runs',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { json: { type: 'boolean' } }, ['SANDBOX_ID']);
        const path = `/sandboxes/${encodeURIComponent(positionals[0] ?? '')}`;
        const { envdAccessToken: _, ...sandbox } = (await request('GET', path)) as Record<string, unknown>;
        const rows = Object.entries(sandbox).map(([name, value]) => [name, textOf(value)]);
        show(terminal, values.json, sandbox, rows);
        return 0;
      },
    },
    {
      name: 'sandbox metrics',
      usage: '[--json] SANDBOX_ID',
      summary: 'Shows what a sandbox has used of CPU, memory and disk',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { json: { type: 'boolean' } }, ['SANDBOX_ID']);
        const path = `/sandboxes/${encodeURIComponent(positionals[0] ?? '')}/metrics`;
        const metrics = (await request('GET', path, undefined, headers => {
          if (headers.get('X-Partial') === 'true') terminal.err(partialText('samples'));
        })) as Metric[];
        const rows = metrics.map(at => [
          at.timestamp,
          `${at.cpuUsedPct.toFixed(1)} % of ${at.cpuCount}`,
          `${mebibytes(at.memUsed)} of ${mebibytes(at.memTotal)} MiB`,
          `${mebibytes(at.diskUsed)} of ${mebibytes(at.diskTotal)} MiB`,
        ]);
        show(terminal, values.json, metrics, [['TIME', 'CPU', 'MEMORY', 'DISK'], ...rows]);
        return 0;
      },
    },
    {
      name: 'sandbox open',
      usage: '[--json] SANDBOX_ID PORT',
      summary: 'Prints the address at which a port of a sandbox is reached',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { json: { type: 'boolean' } }, ['SANDBOX_ID', 'PORT']);
        const [sandboxId = '', port = ''] = positionals;
        if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535)
          throw new AtollError('invalid', `PORT must be a number from 1 to 65535, and ${port} is not`, {
            detail: commandLineDetail,
          });
        await request('GET', `/sandboxes/${encodeURIComponent(sandboxId)}`);
        const { url, domain } = connect();
        const address = `${new URL(url).protocol}//${port}-${sandboxId}.${domain}`;
        terminal.out(values.json ? jsonText({ url: address }) : `${address}\n`);
        return 0;
      },
    },
  ];
}

const mebibytes = (bytes: number) => String(Math.round(bytes / 1024 ** 2));

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));
