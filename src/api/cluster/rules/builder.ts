import { AtollError } from '../../../base/error.ts';
import type { BuildProtocol, StartBuild } from '../../../protocol/build.ts';
import { nodeOfBuild, putNodeOfBuild, runningBuildsByNode } from '../../build/store/node.ts';
import type { Db } from '../../database/db.ts';
import { drainingNodes } from '../../placement/node-status.ts';
import type { KnownMachine, Machines } from './machines.ts';

/** Builds on the machines of a cluster: each on one of them, which the database names. */
export function clusterBuilder(machines: Machines, db: Db): BuildProtocol {
  const builderOf = async (buildId: string) => {
    const nodeId = await nodeOfBuild(db, buildId);
    if (nodeId === null) throw new AtollError('not_found', `no machine was told of build ${buildId}`);
    return machines.known(nodeId).machine.builds;
  };
  return {
    readDockerfile: text => anyOf(machines).machine.builds.readDockerfile(text),
    async start(request) {
      refuseFiles(request);
      const layers = layersOf(request);
      const { node, machine } = await placeBuild(machines, db, layers);
      await putNodeOfBuild(db, request.buildId, node.nodeId);
      await machines.layers.ensure(node.nodeId, layers);
      await machine.builds.start(request);
    },
    progress: async (buildId, after, waitMs) => (await builderOf(buildId)).progress(buildId, after, waitMs),
    async cancel(buildId, reason) {
      if ((await nodeOfBuild(db, buildId)) !== null) await (await builderOf(buildId)).cancel(buildId, reason);
    },
    forget: async buildId => (await builderOf(buildId)).forget(buildId),
    async collect(keep) {
      const all = await Promise.all(machines.usable().map(({ machine }) => machine.builds.collect(keep)));
      const sum = (of: (freed: (typeof all)[number]) => number) => all.reduce((total, freed) => total + of(freed), 0);
      return {
        layersDeleted: sum(freed => freed.layersDeleted),
        filesDeleted: sum(freed => freed.filesDeleted),
        bytesFreed: sum(freed => freed.bytesFreed),
      };
    },
  };
}

/** Where the layers are already, and there where the fewest builds run. */
async function placeBuild(machines: Machines, db: Db, layers: readonly string[]): Promise<KnownMachine> {
  const closed = await drainingNodes(db);
  const open = machines.usable().filter(({ node }) => !closed.has(node.nodeId));
  const [holders, running] = await Promise.all([machines.layers.holders(layers), runningBuildsByNode(db)]);
  const cost = ({ node: { nodeId } }: KnownMachine) => (holders.includes(nodeId) ? 0 : 1) + (running.get(nodeId) ?? 0);
  const [best] = open.toSorted((a, b) => cost(a) - cost(b));
  return best ?? anyOf(machines);
}

function anyOf(machines: Machines): KnownMachine {
  const [first] = machines.usable();
  if (first) return first;
  throw new AtollError('unavailable', 'No machine of the cluster is in reach now; nothing was changed');
}

/** The layers that a build begins from. */
function layersOf({ source }: StartBuild): string[] {
  if (source.kind === 'state') return source.state.layers;
  return source.kind === 'dockerfile' ? Object.values(source.templates).flatMap(({ layers }) => layers) : [];
}

function refuseFiles({ steps, source }: StartBuild): void {
  const copies =
    steps.some(({ filesHash }) => filesHash !== undefined) ||
    (source.kind === 'dockerfile' &&
      source.stages.some(({ instructions }) => instructions.some(({ kind }) => kind === 'copy')));
  if (copies)
    throw new AtollError(
      'unimplemented',
      'Builds that copy uploaded files are not offered on a cluster yet: fetch them in a RUN step, or build on ' +
        'one machine',
    );
}
