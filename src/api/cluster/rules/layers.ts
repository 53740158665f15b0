import { SingleFlight } from '../../../base/concurrency/single-flight.ts';
import { AtollError, messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { ClusterLinks, Machine } from '../../../protocol/cluster.ts';
import { noCompatibleNode } from '../../placement/nodes.ts';
import type { CreateSandbox, NodeProtocol } from '../../../protocol/node.ts';

type Holder = { node: { nodeId: string }; machine: Machine };

/** Brings a layer from the store of the cluster; false where it is not there. */
type FromStore = (digest: string, to: Machine) => Promise<boolean>;

/** Brings layers to machines that lack them, from the store or from other machines; each layer once at a time. */
export class LayerCopies {
  readonly #machines: () => readonly Holder[];
  readonly #links: ClusterLinks;
  readonly #log: Log;
  readonly #underWay = new SingleFlight<string, void>();
  /** Tried first, where there is a store. */
  fromStore: FromStore = async () => false;

  constructor(machines: () => readonly Holder[], links: ClusterLinks, log: Log) {
    this.#machines = machines;
    this.#links = links;
    this.#log = log;
  }

  /**
   * Answers when a machine has all of these layers. Errors: `unavailable` where no machine in reach has one of them.
   */
  async ensure(nodeId: string, digests: readonly string[]): Promise<void> {
    const target = this.#machines().find(({ node }) => node.nodeId === nodeId);
    if (!target || digests.length === 0) return;
    for (const digest of await target.machine.layers.missing([...digests]))
      await this.#underWay.run(`${nodeId} ${digest}`, () => this.#copy(digest, target));
  }

  /** The machines that have all of these layers. */
  async holders(digests: readonly string[]): Promise<string[]> {
    const missing = await Promise.all(
      this.#machines().map(async ({ node, machine }) => ({
        nodeId: node.nodeId,
        count: await machine.layers.missing([...digests]).then(
          found => found.length,
          () => digests.length, // out of reach
        ),
      })),
    );
    return missing.filter(({ count }) => count === 0).map(({ nodeId }) => nodeId);
  }

  /** A machine in reach that has a layer. Errors: `unavailable`. */
  async holder(digest: string): Promise<Machine> {
    const [first] = await this.holders([digest]);
    const found = this.#machines().find(({ node }) => node.nodeId === first);
    if (found) return found.machine;
    throw noHolder(digest);
  }

  async #copy(digest: string, target: Holder): Promise<void> {
    const isStored = await this.fromStore(digest, target.machine).catch((error: unknown) => {
      this.#log.warn('a layer could not be had from the store', { digest, error: messageOf(error) });
      return false;
    });
    if (isStored) return;
    const holders = (await this.holders([digest])).filter(nodeId => nodeId !== target.node.nodeId);
    const source = this.#machines().find(({ node }) => node.nodeId === holders[0]);
    if (!source) throw noHolder(digest);
    await this.#links.copyLayer(digest, source.machine.layers, target.machine.layers);
  }
}

const noHolder = (digest: string) =>
  new AtollError('unavailable', `No machine in reach has the layer ${digest}; try again when all are back`, {
    detail: noCompatibleNode,
  });

/** Brings the content that a sandbox starts from to a machine. */
type Bringing = {
  layers(digests: readonly string[]): Promise<void>;
  /** Brings memory that the machine lacks; false where there is none, or it does not fit the machine. */
  memory(snapshotId: string): Promise<boolean>;
};

/** A node that first gets the layers and the memory of what it is to start. */
export function withContent({ node }: Machine, bring: Bringing): NodeProtocol {
  return {
    ...node,
    async create(request, signal) {
      const image = await startable(node, request, bring);
      const create = () => node.create({ ...request, image }, signal);
      if (image.started) {
        // Without the layers under its started server, the sandbox would boot and nobody would learn why.
        await bring.layers(image.started.layers);
        return create();
      }
      try {
        // Mostly the node has them, and asking takes a tenth of the time of a create.
        return await create();
      } catch (error) {
        // If something other than a layer is missing, it will be missing the next time too.
        if (!(error instanceof AtollError) || error.code !== 'not_found') throw error;
        await bring.layers(image.layers);
        return create();
      }
    },
  };
}

/**
 * A template's server boots where its memory can't be had. Memory that was requested is another matter: the node
 * answers that it is not there.
 */
async function startable(
  node: NodeProtocol,
  { image }: CreateSandbox,
  bring: Bringing,
): Promise<CreateSandbox['image']> {
  const { started, ...others } = image;
  const snapshotId = image.memorySnapshotId ?? started?.snapshotId;
  if (snapshotId === undefined) return image;
  const isHere = (await node.listSnapshots()).some(known => known.snapshotId === snapshotId);
  if (isHere || (await bring.memory(snapshotId))) return image;
  return image.memorySnapshotId === undefined ? others : image;
}
