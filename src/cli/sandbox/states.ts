import { jsonOption, misuse, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';
import { confirm, jsonText } from '../terminal/table.ts';
import { numberOf } from '../terminal/number.ts';

const pathOf = (sandboxId: string | undefined) => `/sandboxes/${encodeURIComponent(sandboxId ?? '')}`;

/** Commands that change a sandbox's state, or make others from it. */
export function stateCommands(request: PlatformRequest): Command[] {
  return [...changeCommands(request), ...copyCommands(request)];
}

function changeCommands(request: PlatformRequest): Command[] {
  return [
    {
      name: 'sandbox pause',
      usage: '[--without-memory] [--json] SANDBOX_ID',
      summary: 'Pauses a sandbox with its memory, where the machine can keep that; --without-memory: its files alone',
      async run(args, terminal) {
        const options = { 'without-memory': { type: 'boolean' }, ...jsonOption } as const;
        const { values, positionals } = parseArguments(args, options, ['SANDBOX_ID']);
        const [sandboxID] = positionals;
        await request('POST', `${pathOf(sandboxID)}/pause`, values['without-memory'] ? { memory: false } : {});
        confirm(terminal, values.json, { sandboxID, state: 'paused' }, 'Paused.');
        return 0;
      },
    },
    {
      name: 'sandbox resume',
      usage: '[--timeout SECONDS] [--without-memory] [--json] SANDBOX_ID',
      summary: 'Resumes a paused sandbox, with its memory or from its files alone',
      async run(args, terminal) {
        const options = { timeout: { type: 'string' }, 'without-memory': { type: 'boolean' }, ...jsonOption } as const;
        const { values, positionals } = parseArguments(args, options, ['SANDBOX_ID']);
        const body = {
          ...(values.timeout !== undefined && { timeout: numberOf('--timeout', values.timeout) }),
          ...(values['without-memory'] && { memory: false }),
        };
        const sandbox = await request('POST', `/v2${pathOf(positionals[0])}/connect`, body);
        confirm(terminal, values.json, sandbox, 'Running.');
        return 0;
      },
    },
    {
      name: 'sandbox extend',
      usage: '[--json] SANDBOX_ID SECONDS',
      summary: 'Lets a sandbox run this long from now',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['SANDBOX_ID', 'SECONDS']);
        const [sandboxID, seconds = ''] = positionals;
        const timeout = numberOf('SECONDS', seconds);
        if (timeout < 1) throw misuse('SECONDS must be at least 1; `atoll sandbox kill` ends a sandbox');
        await request('POST', `${pathOf(sandboxID)}/timeout`, { timeout });
        confirm(terminal, values.json, { sandboxID, timeout }, `It ends in ${timeout} s.`);
        return 0;
      },
    },
  ];
}

/** Commands that make others from a sandbox. */
function copyCommands(request: PlatformRequest): Command[] {
  return [
    {
      name: 'sandbox fork',
      usage: '[--count N] [--json] SANDBOX_ID',
      summary: 'Makes sandboxes that begin as this one is now, and prints their IDs',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, { count: { type: 'string' }, json: { type: 'boolean' } }, [
          'SANDBOX_ID',
        ]);
        const body = values.count === undefined ? {} : { count: numberOf('--count', values.count) };
        const forks = (await request('POST', `${pathOf(positionals[0])}/fork`, body)) as Fork[];
        if (values.json) terminal.out(jsonText(forks));
        else for (const { sandbox } of forks) if (sandbox) terminal.out(`${sandbox.sandboxID}\n`);
        for (const { error } of forks) if (error) terminal.err(`One could not be made: ${error.message}\n`);
        return forks.some(({ error }) => error) ? 1 : 0;
      },
    },
    {
      name: 'sandbox snapshot',
      usage: '[--name NAME] [--without-memory] [--json] SANDBOX_ID',
      summary: 'Makes a template of a running sandbox as it is now, and prints what a create takes',
      async run(args, terminal) {
        const { values, positionals } = parseArguments(
          args,
          { name: { type: 'string' }, 'without-memory': { type: 'boolean' }, json: { type: 'boolean' } },
          ['SANDBOX_ID'],
        );
        const snapshot = (await request('POST', `${pathOf(positionals[0])}/snapshots`, {
          ...(values.name !== undefined && { name: values.name }),
          ...(values['without-memory'] && { memory: false }),
        })) as { snapshotID: string };
        terminal.out(values.json ? jsonText(snapshot) : `${snapshot.snapshotID}\n`);
        return 0;
      },
    },
  ];
}

type Fork = { sandbox?: { sandboxID: string }; error?: { message: string } };
