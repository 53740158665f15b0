import { SingleFlight } from '../../../base/concurrency/single-flight.ts';
import { microsPerSecond } from '../../../base/clock.ts';
import { AtollError, messageOf } from '../../../base/error.ts';
import type { Log } from '../../../base/telemetry/log.ts';
import type { ClusterLinks, ControlIdentity, Machine, NodeWay, PauseFacts } from '../../../protocol/cluster.ts';
import { type AwayNode, type Carried, noCompatibleNode, type Nodes } from '../../placement/nodes.ts';
import type { NodeInfo, NodeProtocol } from '../../../protocol/node.ts';
import type { ClusterNode } from '../record.ts';
import { misfit } from '../../placement/misfit.ts';
import { LayerCopies, withContent } from './layers.ts';
import { leaseSeconds } from './lease.ts';
import { PassedTime } from './passed-time.ts';

/** What a machine said last, by its clock and by ours. */
type Heard = { epoch: string; nowMs: number; atUs: number };

/** A machine that this process keeps in touch with. */
export type KnownMachine = {
  node: ClusterNode;
  readonly machine: Machine;
  /** Its node, as the rest of control calls it. */
  readonly protocol: NodeProtocol;
  heard: Heard | null;
  /** The release of its program that it last reported; null before that. */
  release: string | null;
  /** It answered the last thing that it was told. */
  isAnswering: boolean;
  /** It answered a moment ago, has a lease, and takes work. */
  isUsable: boolean;
  /** When this process found it usable. */
  usableSinceUs: number;
};

/** Memory that sandboxes start with, by the IDs of snapshots; see `DurableSnapshots`. */
type Memories = {
  facts(snapshotId: string): Promise<PauseFacts | null>;
  bring(snapshotId: string, nodeId: string): Promise<void>;
};

/** Work that goes on while a machine is usable: begins it, and answers how to end it. */
type WhileUsable = (node: NodeProtocol) => { stop(): Promise<void> };

/** The machines of a cluster as this process reaches them. */
export class Machines implements Nodes {
  readonly #known = new Map<string, KnownMachine & { following: { stop(): Promise<void> } | null }>();
  readonly #links: ClusterLinks;
  readonly #identity: () => ControlIdentity;
  readonly #log: Log;
  /** Brings layers to machines that lack them. */
  readonly layers: LayerCopies;
  /** Brings memory that sandboxes start with, where there is a store. */
  memories: Memories | null = null;
  /** The time that passes on their clocks. */
  readonly passed = new PassedTime();
  /** The beats under way, one for each machine. */
  readonly beats = new SingleFlight<KnownMachine, void>();
  #whileUsable: WhileUsable = () => ({ stop: async () => {} });

  constructor(links: ClusterLinks, identity: () => ControlIdentity, log: Log) {
    this.#links = links;
    this.#identity = identity;
    this.#log = log;
    this.layers = new LayerCopies(() => this.usable(), links, log);
  }

  get carried(): Carried {
    return this.#links;
  }

  /** Runs `work` for each machine from now on. */
  follow(work: WhileUsable): void {
    this.#whileUsable = work;
  }

  list(): { nodeId: string; protocol: NodeProtocol; info?: NodeInfo; release?: string; sinceUs: number }[] {
    return this.usable().map(({ node: { nodeId, info }, protocol, release, usableSinceUs }) => ({
      nodeId,
      protocol,
      sinceUs: usableSinceUs,
      ...(info && { info }),
      ...(release !== null && { release }),
    }));
  }

  get(nodeId: string): NodeProtocol {
    return this.known(nodeId).protocol;
  }

  /** The machines that are away, each since any process of control last heard it. */
  away(): AwayNode[] {
    return [...this.#known.values()]
      .filter(({ isUsable }) => !isUsable)
      .map(({ node: { nodeId, info, joinedAtUs, leaseUntilUs }, isAnswering, release }) => ({
        nodeId,
        ...(release !== null && { release }),
        isConnecting: isAnswering || leaseUntilUs === null,
        sinceUs: leaseUntilUs === null ? joinedAtUs : leaseUntilUs - leaseSeconds * microsPerSecond,
        info,
      }));
  }

  /** A machine with all of its services. Throws `unavailable` for one that can't be used now. */
  known(nodeId: string): KnownMachine {
    const known = this.#known.get(nodeId);
    if (known?.isUsable) return known;
    throw new AtollError('unavailable', `The machine of this sandbox (node ${nodeId}) is out of reach; try again`, {
      detail: noCompatibleNode,
      retryAfterSeconds: 2,
    });
  }

  /** The machines that can be used now, ordered by ID. */
  usable(): KnownMachine[] {
    return [...this.#known.values()].filter(({ isUsable }) => isUsable);
  }

  /**
   * Adopts the present list of the cluster's machines. One that moved, or has another certificate, is connected anew.
   */
  update(nodes: readonly ClusterNode[]): KnownMachine[] {
    const there = new Set(nodes.map(({ nodeId }) => nodeId));
    for (const nodeId of this.#known.keys()) if (!there.has(nodeId)) this.#forget(nodeId);
    return nodes.map(node => {
      const known = this.#known.get(node.nodeId);
      if (known && placeOf(known.node) === placeOf(node)) return Object.assign(known, { node });
      this.#forget(node.nodeId);
      const machine = this.#links.connect(node.nodeId, async () => this.#wayTo(node, this.#identity));
      const protocol = withContent(machine, {
        layers: digests => this.layers.ensure(node.nodeId, digests),
        memory: snapshotId => this.#bringMemory(snapshotId, node.nodeId),
      });
      const made = {
        node,
        machine,
        protocol,
        heard: null,
        release: null,
        isAnswering: false,
        isUsable: false,
        usableSinceUs: 0,
        following: null,
      };
      this.#known.set(node.nodeId, made);
      return made;
    });
  }

  /** Sets whether a machine can be used from now on. */
  setUsable(nodeId: string, isUsable: boolean, nowUs: number): void {
    const known = this.#known.get(nodeId);
    if (!known || known.isUsable === isUsable) return;
    known.isUsable = isUsable;
    if (isUsable) known.usableSinceUs = nowUs;
    if (isUsable) known.following = this.#whileUsable(known.protocol);
    else {
      void known.following?.stop();
      known.following = null;
      // Callers that wait for an answer would otherwise wait as long as the call may take.
      known.machine.drop();
    }
  }

  async stop(): Promise<void> {
    const following = [...this.#known.values()].map(async ({ following }) => following?.stop());
    for (const nodeId of [...this.#known.keys()]) this.#forget(nodeId);
    await Promise.all(following);
  }

  /** The way to a machine for another process of control. Throws `unavailable` for one that can't be used now. */
  way(nodeId: string, identity: () => ControlIdentity): NodeWay {
    return this.#wayTo(this.known(nodeId).node, identity);
  }

  async #bringMemory(snapshotId: string, nodeId: string): Promise<boolean> {
    const facts = await this.memories?.facts(snapshotId);
    const info = this.#known.get(nodeId)?.node.info ?? undefined;
    if (!this.memories || !facts || misfit(facts, info, true) !== null) return false;
    try {
      await this.memories.bring(snapshotId, nodeId);
      return true;
    } catch (error) {
      this.#log.warn('memory could not be brought to a machine', { nodeId, snapshotId, error: messageOf(error) });
      return false;
    }
  }

  #wayTo({ nodeId, address, certificates }: ClusterNode, identity: () => ControlIdentity): NodeWay {
    return { place: { nodeId, ...addressOf(address), certificates }, identity: identity() };
  }

  #forget(nodeId: string): void {
    const known = this.#known.get(nodeId);
    if (!known) return;
    this.#known.delete(nodeId);
    this.passed.forget(nodeId);
    void known.following?.stop();
    known.machine.close();
  }
}

const placeOf = ({ address, certificates }: ClusterNode) => JSON.stringify([address, certificates]);

/** Host and port of an address as `addressForm` allows it. */
function addressOf(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) };
}
