import { counted } from '../../base/counted.ts';
import { AtollError } from '../../base/error.ts';
import { commandLineDetail, jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { pairsOf } from '../terminal/pairs.ts';
import { confirm } from '../terminal/table.ts';
import { isSure } from '../terminal/sure.ts';
import type { PlatformList, PlatformRequest } from '../connection/platform-request.ts';

/** `atoll sandbox kill`: ends sandboxes by their IDs, or all that run. */
export function killCommand(request: PlatformRequest, list: PlatformList): Command {
  return {
    name: 'sandbox kill',
    usage: '[--all [--metadata NAME=VALUE]... [--yes]] [--json] [SANDBOX_ID...]',
    summary: 'Ends sandboxes; --all: every one of the team that runs, or those of them with this metadata',
    async run(args, terminal) {
      const { values, positionals } = parseArguments(
        args,
        {
          all: { type: 'boolean' },
          metadata: { type: 'string', multiple: true },
          yes: { type: 'boolean' },
          ...jsonOption,
        },
        ['[SANDBOX_ID...]'],
      );
      const isAll = values.all ?? false;
      if (isAll === positionals.length > 0 || (values.metadata && !isAll))
        throw new AtollError('invalid', 'give either the IDs of sandboxes or --all, and --metadata with --all alone', {
          detail: commandLineDetail,
        });
      const ids = isAll ? await running(list, pairsOf('--metadata', values.metadata)) : positionals;
      const question = `This ends ${counted(ids.length, 'sandbox', 'sandboxes')}. Go on?`;
      if (isAll && ids.length > 0 && !values.yes && !(await isSure(terminal, question))) {
        terminal.err('Nothing was changed.\n');
        return 1;
      }
      const ended: string[] = [];
      for (const id of ids) {
        const failure = await killed(request, id);
        // One that has ended meanwhile is as wanted.
        if (failure === undefined || (isAll && failure.code === 'not_found')) ended.push(id);
        else terminal.err(`atoll sandbox kill: ${failure.message}\n`);
      }
      const sentence = ids.length === 1 && ended.length === 1 ? 'Ended.' : `Ended ${ended.length} of ${ids.length}.`;
      const killedOnes = ended.map(sandboxID => ({ sandboxID }));
      confirm(terminal, values.json, killedOnes, sentence);
      return ended.length === ids.length ? 0 : 1;
    },
  };
}

/** Why a sandbox could not be ended; undefined if it was ended. */
async function killed(request: PlatformRequest, id: string): Promise<AtollError | undefined> {
  try {
    await request('DELETE', `/sandboxes/${encodeURIComponent(id)}`);
    return undefined;
  } catch (error) {
    if (error instanceof AtollError) return error;
    throw error;
  }
}

/** IDs of running sandboxes with this metadata. */
async function running(list: PlatformList, metadata: Record<string, string>): Promise<string[]> {
  const wanted = new URLSearchParams(metadata).toString();
  const query = new URLSearchParams({ state: 'running', ...(wanted !== '' && { metadata: wanted }) });
  const sandboxes = (await list(`/v2/sandboxes?${query}`)) as { sandboxID: string }[];
  return sandboxes.map(({ sandboxID }) => sandboxID);
}
