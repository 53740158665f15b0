import { counted } from '../../base/counted.ts';
import { AtollError } from '../../base/error.ts';
import type { NodeDrain } from '../../protocol/api/drain.ts';
import { jsonOption, oneOf, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';
import { confirm, momentText, show, tableText, toPerson } from '../terminal/table.ts';

type Node = {
  id: string;
  status: string;
  statusChangedAt: string;
  sandboxCount: number;
  version: string;
  metrics: { cpuCount: number; cpuPercent: number; memoryUsedBytes: number; memoryTotalBytes: number };
};

const changes = {
  cordon: { status: 'standby', summary: 'Begins no more sandboxes on a node; what it has goes on' },
  uncordon: { status: 'ready', summary: 'Lets sandboxes begin on a node again' },
};

const gibibytes = (bytes: number) => (bytes / 2 ** 30).toFixed(1);

/** `atoll node …`: the machines that host sandboxes, for the operator. */
export function nodeCommands(request: PlatformRequest): Command[] {
  return [
    {
      name: 'node list',
      usage: '[--json]',
      summary: 'Lists the machines that host sandboxes, also those out of reach, and what they have left',
      async run(args, terminal) {
        const { values } = parseArguments(args, { json: { type: 'boolean' } });
        const nodes = (await request('GET', '/nodes')) as Node[];
        const rows = nodes.map(({ id, status, statusChangedAt, sandboxCount, version, metrics }) => [
          id,
          status,
          momentText(terminal, statusChangedAt),
          String(sandboxCount),
          version,
          `${metrics.cpuPercent} % of ${metrics.cpuCount}`,
          `${gibibytes(metrics.memoryUsedBytes)} of ${gibibytes(metrics.memoryTotalBytes)} GiB`,
        ]);
        show(terminal, values.json, nodes, [
          ['ID', 'STATUS', 'SINCE', 'SANDBOXES', 'RELEASE', 'CPU', 'MEMORY'],
          ...rows,
        ]);
        return 0;
      },
    },
    drainCommand(request),
    ...Object.entries(changes).map(([word, { status, summary }]): Command => ({
      name: `node ${word}`,
      usage: '[--json] NODE_ID',
      summary,
      async run(args, terminal) {
        const { values, positionals } = parseArguments(args, jsonOption, ['NODE_ID']);
        const [id = ''] = positionals;
        await request('POST', `/nodes/${encodeURIComponent(id)}`, { status });
        confirm(terminal, values.json, { id, status }, `It is ${status}.`);
        return 0;
      },
    })),
  ];
}

const pollMs = 1_000;

/** What happens to the sandboxes of a machine in those modes of draining that take something from them. */
const takes: Partial<Record<string, { verb: string; done: string }>> = {
  pause: { verb: 'pauses', done: 'PAUSED' },
  move: { verb: 'moves', done: 'MOVED' },
};

/** Drains a machine, and waits until it is done. */
function drainCommand(request: PlatformRequest): Command {
  return {
    name: 'node drain',
    usage: 'NODE_ID [--mode wait|pause|move] [--dry-run] [--force] [--no-wait] [--json]',
    summary: 'Empties a node: lets its sandboxes end, or pauses them or moves them to other nodes with their memory',
    async run(args, terminal) {
      const flags = {
        force: { type: 'boolean' },
        'no-wait': { type: 'boolean' },
        'dry-run': { type: 'boolean' },
        ...jsonOption,
      } as const;
      const { values, positionals } = parseArguments(args, { mode: { type: 'string' }, ...flags }, ['NODE_ID']);
      const mode = oneOf('--mode', values.mode ?? 'wait', ['wait', 'pause', 'move']);
      const path = `/admin/nodes/${encodeURIComponent(positionals[0] ?? '')}/drain`;
      const read = async (query = '') => (await request('GET', path + query)) as NodeDrain;
      if (values['dry-run'] || takes[mode]) {
        const there = await read(`?mode=${encodeURIComponent(mode)}`);
        const stuck = listStuck(toPerson(terminal, values.json), mode, there);
        if (values['dry-run']) {
          confirm(terminal, values.json, there, `Nothing was changed: ${canGo(there)} can go.`);
          return 0;
        }
        if (stuck > 0 && !values.force)
          throw new AtollError(
            'precondition',
            `Nothing was changed. --force ${takes[mode]?.verb} the others and waits until these have ended.`,
          );
      }
      let drain = (await request('POST', path, { mode })) as NodeDrain;
      let left = leftText(drain);
      for (let reported = ''; left !== '' && !values['no-wait']; await Bun.sleep(pollMs)) {
        if (left !== reported) terminal.err(`${left} left.\n`);
        reported = left;
        drain = await read();
        left = leftText(drain);
      }
      const sentence = left === '' ? doneText(drain) : `It takes no new ones; ${left} left.`;
      confirm(terminal, values.json, drain, sentence);
      return 0;
    },
  };
}

/** What a machine still has, with its verb; empty if it has nothing. */
const leftText = ({ sandboxes, volumes }: NodeDrain): string => areText(sandboxes.length, volumes.length);

function areText(sandboxes: number, volumes: number, kind = ''): string {
  const things = [
    ...(sandboxes > 0 ? [counted(sandboxes, `${kind}sandbox`, `${kind}sandboxes`)] : []),
    ...(volumes > 0 ? [counted(volumes, 'volume')] : []),
  ];
  return things.length === 0 ? '' : `${things.join(' and ')} ${sandboxes + volumes === 1 ? 'is' : 'are'}`;
}

/**
 * What remains on a machine that no longer runs anything: whoever switches it off for good must know what goes with it.
 */
function doneText({ kept }: NodeDrain): string {
  const alone = areText(kept.sandboxes, kept.volumes, 'paused ');
  if (alone === '') return 'It is empty, and takes no new ones.';
  return `It runs nothing, and takes no new ones. ${alone} on its disk alone, and would be lost with it.`;
}

/** How much of what a machine has can move. */
function canGo({ sandboxes, volumes }: NodeDrain): string {
  const of = (things: { reason?: string }[], name: string, many?: string) =>
    `${things.filter(({ reason }) => reason === undefined).length} of ${counted(things.length, name, many)}`;
  const those = of(sandboxes, 'sandbox', 'sandboxes');
  return volumes.length > 0 ? `${those} and ${of(volumes, 'volume')}` : those;
}

/** Lists what can't move in this mode, with the reasons; answers how many there are. */
function listStuck(print: (text: string) => void, mode: string, { sandboxes, volumes }: NodeDrain): number {
  const rows = [
    ...sandboxes.map(({ sandboxID, reason }) => [sandboxID, reason]),
    ...volumes.map(({ name, reason }) => [`volume ${name}`, reason]),
  ].flatMap(([what = '', reason]) => (reason === undefined ? [] : [[what, reason]]));
  if (rows.length > 0) {
    print(tableText([[`CAN'T BE ${takes[mode]?.done ?? 'ENDED'}`, 'BECAUSE'], ...rows]));
  }
  return rows.length;
}
