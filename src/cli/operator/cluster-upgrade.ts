import { AtollError } from '../../base/error.ts';
import { platformVersion } from '../../base/version.ts';
import type { NodeDrain } from '../../protocol/api/drain.ts';
import type { PlatformRequest } from '../connection/platform-request.ts';
import { jsonOption, parseArguments } from '../terminal/arguments.ts';
import type { Command } from '../terminal/command.ts';
import { confirm, jsonText, tableText, toPerson } from '../terminal/table.ts';

type Node = { id: string; status: string; version: string };

/** What an upgrade asks and does. */
type UpgradeDeps = {
  /** The operator's. */
  request: PlatformRequest;
  /** Replaces the program of a machine: runs a program of the operator's, and answers its outcome. */
  run?(program: string, nodeId: string): Promise<number>;
  pollMs?: number;
};

/** `atoll cluster upgrade`: brings the machines of a cluster to this release, one after another. */
export function clusterUpgradeCommand({ request, run = runProgram, pollMs = 1_000 }: UpgradeDeps): Command {
  return {
    name: 'cluster upgrade',
    usage: '[--run PROGRAM] [--force] [--json]',
    summary:
      'Brings the machines of the cluster to this release, one after the other: moves what a machine has, waits for ' +
      'its program to be replaced (by PROGRAM, which gets the NODE_ID), and lets sandboxes begin there again',
    async run(args, terminal) {
      const { values } = parseArguments(args, { run: { type: 'string' }, force: { type: 'boolean' }, ...jsonOption });
      const nodes = async () => (await request('GET', '/nodes')) as Node[];
      const older = (await nodes()).filter(({ version }) => version !== platformVersion);
      if (older.length === 0) {
        confirm(terminal, values.json, await nodes(), `All machines are of release ${platformVersion}.`);
        return 0;
      }
      const print = toPerson(terminal, values.json);
      for (const [index, { id, version }] of older.entries()) {
        terminal.err(`${index + 1} of ${older.length}: node ${id}, of release ${version}\n`);
        await empty(print, { request, pollMs }, { nodeId: id, force: values.force ?? false });
        if (values.run === undefined)
          terminal.err(`It is empty. Replace its program by release ${platformVersion} and start that; this waits.\n`);
        else {
          const code = await run(values.run, id);
          if (code !== 0)
            throw new AtollError(
              'precondition',
              `${values.run} ended with ${code} for node ${id}, which is empty and takes no sandboxes: replace its ` +
                'program, and start this command again.',
            );
        }
        const isThere = ({ id: other, status, version }: Node) =>
          other === id && version === platformVersion && status !== 'unhealthy' && status !== 'connecting';
        while (!(await nodes()).some(isThere)) await Bun.sleep(pollMs);
        await request('POST', `/nodes/${encodeURIComponent(id)}`, { status: 'ready' });
        while (!(await nodes()).some(node => isThere(node) && node.status === 'ready')) await Bun.sleep(pollMs);
        terminal.err(`It is ready with release ${platformVersion}.\n`);
      }
      if (values.json) terminal.out(jsonText(await nodes()));
      return 0;
    },
  };
}

/**
 * Moves everything that a machine has to others. If something can't move, throws `precondition` and changes nothing.
 */
async function empty(
  print: (text: string) => void,
  { request, pollMs }: { request: PlatformRequest; pollMs: number },
  { nodeId, force }: { nodeId: string; force: boolean },
): Promise<void> {
  const path = `/admin/nodes/${encodeURIComponent(nodeId)}/drain`;
  const left = async (query = '') => ((await request('GET', path + query)) as NodeDrain).sandboxes;
  const stuck = (await left('?mode=move')).filter(({ reason }) => reason !== undefined);
  if (stuck.length > 0) {
    const rows = stuck.map(({ sandboxID, reason }) => [sandboxID, reason ?? '']);
    print(tableText([["CAN'T BE MOVED", 'BECAUSE'], ...rows]));
    if (!force)
      throw new AtollError(
        'precondition',
        `Node ${nodeId} was not changed. End these, or wait for them with --force, which moves the others; or ` +
          'replace its program in its place, where they run on, and start this command again.',
      );
  }
  await request('POST', path, { mode: 'move' });
  while ((await left()).length > 0) await Bun.sleep(pollMs);
}

async function runProgram(program: string, nodeId: string): Promise<number> {
  return Bun.spawn([program, nodeId], { stdin: 'ignore', stdout: 2, stderr: 'inherit' }).exited;
}
