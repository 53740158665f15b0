import { AtollError, messageOf } from '../../../../base/error.ts';
import type { CertificatePair } from '../../../../base/crypto/certificate.ts';
import { parseAddress } from '../../../../protocol/network/network.ts';
import type { CompiledPolicy } from '../../../../protocol/network/egress-policy.ts';
import { splice, type Channel, type SocketChannel } from './channel.ts';
import { decide, type Asked, type DecideOptions, type Decision } from './decide.ts';
import type { Descriptors } from './shares/descriptors.ts';
import { connect, dial, type Dialled } from './dial.ts';
import type { Account, Target } from './target.ts';
import type { Resolver } from './dns/resolver.ts';
import { connectionsMax, type Carried, type ProxiedSandbox } from './sandboxes.ts';
import { Relay } from './http/relay.ts';
import { openingTimeoutMs, readOpening, silenceMs } from './opening.ts';
import { platformRefusal } from './platform.ts';
import { acceptTls, connectTls } from './tls/tls-channel.ts';

/** What serving the connections of all sandboxes needs. */
export type ServeContext = DecideOptions & {
  resolver: Resolver;
  descriptors: Descriptors;
  certificateFor(host: string): CertificatePair;
  roots: string;
};

/** Where the client wanted to connect. */
export type Destination = { address: string; octets: Uint8Array; port: number };

/** Carries one connection of a sandbox, as far as its policy allows. `reach` connects to the destination. */
export async function serve(
  context: ServeContext,
  sandbox: ProxiedSandbox,
  client: SocketChannel,
  destination: Destination,
  reach = dial,
): Promise<void> {
  const release = sandbox.connections.size < connectionsMax ? context.descriptors.take(sandbox) : undefined;
  if (!release) {
    const rule =
      sandbox.connections.size < connectionsMax
        ? 'its share of all connections'
        : `at most ${connectionsMax} connections at a time`;
    sandbox.deny({ host: destination.address, port: destination.port, rule });
    return client.abort();
  }
  const connection = new Connection(context, sandbox, client, destination, reach);
  sandbox.connections.add(connection);
  client.whenGone = () => {
    sandbox.connections.delete(connection);
    release();
    connection.gone();
  };
  await connection.run();
}

class Connection implements Carried {
  readonly #context: ServeContext;
  readonly #sandbox: ProxiedSandbox;
  readonly #client: SocketChannel;
  readonly #destination: Destination;
  readonly #reach: typeof dial;
  readonly #cancel = new AbortController();
  #asked: Asked | undefined;
  #decision: Decision | undefined;
  /** The server on the other side, once there is one. */
  #dialled: Dialled | undefined;

  readonly #account: Account;

  constructor(
    context: ServeContext,
    sandbox: ProxiedSandbox,
    client: SocketChannel,
    destination: Destination,
    reach: typeof dial,
  ) {
    this.#reach = reach;
    this.#account = { share: sandbox.share, take: () => context.descriptors.take(sandbox) };
    this.#context = context;
    this.#sandbox = sandbox;
    this.#client = client;
    this.#destination = destination;
  }

  async run(): Promise<void> {
    const { octets, port } = this.#destination;
    const mayPass = this.#sandbox.policy.byAddress(octets).allowed;
    try {
      const asked = await readOpening(this.#client, this.#protocolAt(port), mayPass ? silenceMs : openingTimeoutMs);
      if (!asked) return this.#client.abort();
      this.#asked = asked;
      const decision = (this.#decision = this.#decide(this.#sandbox.policy, asked));
      if (decision.kind === 'refuse') this.#deny(decision.rule);
      else if (decision.kind === 'relay') await this.#relay(asked, decision);
      else await this.#pass(asked, decision);
    } catch (error) {
      this.#fail(error);
    }
  }

  mayStay(policy: CompiledPolicy): boolean {
    if (!this.#asked || !this.#decision) return true; // the new policy will decide about it
    if (!this.#dialled) return Bun.deepEquals(this.#decide(policy, this.#asked), this.#decision);
    if (this.#decision.kind === 'relay' && this.#decision.addresses === 'platform')
      return platformRefusal(policy, this.#decision.name) === undefined;
    const octets = this.#dialled.address === undefined ? undefined : parseAddress(this.#dialled.address);
    if (octets && policy.byAddress(octets).allowed) return true;
    return (
      this.#decision.kind !== 'pass' &&
      this.#asked.name !== undefined &&
      policy.byName(this.#asked.name)?.allowed === true
    );
  }

  cut(): void {
    // This also gives up a connection that is still being made for it.
    this.#client.abort();
    this.#dialled?.channel.abort();
  }

  /** The client is gone: a connection that is still being made for it is not wanted any more. */
  gone(): void {
    this.#cancel.abort(new AtollError('canceled', 'the client has gone'));
  }

  #decide(policy: CompiledPolicy, asked: Asked): Decision {
    return decide(policy, this.#destination.octets, asked, this.#context);
  }

  /** The protocol spoken on a port of the destination. */
  #protocolAt(port: number): 'tls' | 'http' | 'unknown' {
    const { platform } = this.#context;
    const { httpPorts, tlsPorts } =
      platform?.insideAddress === this.#destination.address ? platform : { httpPorts: [80], tlsPorts: [443] };
    return tlsPorts.includes(port) ? 'tls' : httpPorts.includes(port) ? 'http' : 'unknown';
  }

  async #pass(asked: Asked, decision: Decision & { kind: 'pass' | 'pass by name' }): Promise<void> {
    const { address, port } = this.#destination;
    // A SOCKS5 server looks names up itself; but a policy that denies addresses must see the address.
    const free =
      this.#sandbox.policy.source.egressProxy && !this.#sandbox.policy.closed && this.#sandbox.policy.deny.length === 0;
    const host = decision.kind === 'pass by name' ? decision.name : free ? (asked.name ?? address) : address;
    const server = await this.#dial({ host, port }, () => true);
    splice(this.#client, server);
    this.#client.resume();
  }

  async #relay(asked: Asked, { name, addresses }: Decision & { kind: 'relay' }): Promise<void> {
    const { port } = this.#destination;
    const encrypted = asked.kind === 'tls';
    const client: Channel = encrypted ? await acceptTls(this.#client, this.#certificateFor(name)) : this.#client;
    new Relay({
      client,
      host: name,
      port,
      defaultPort: encrypted ? 443 : 80,
      toPlatform: addresses === 'platform',
      headers: () => this.#sandbox.policy.headersFor(name) ?? {},
      onRefused: reason => this.#deny(reason),
      connect: async () => {
        try {
          if (addresses === 'platform') return await this.#dialEdge();
          const mayReach = (octets: Uint8Array) =>
            addresses === 'any' || this.#sandbox.policy.byAddress(octets).allowed;
          const server = await this.#dial({ host: name, port }, mayReach);
          return encrypted ? await connectTls(server, name, this.#context.roots) : server;
        } catch (error) {
          this.#fail(error);
          throw error;
        }
      },
    }).start();
    client.resume();
  }

  /** Makes a certificate on the sandbox's account, because that takes time. */
  #certificateFor(name: string): CertificatePair {
    const startedAt = performance.now();
    const pair = this.#context.certificateFor(name);
    this.#sandbox.share.charge(performance.now() - startedAt);
    return pair;
  }

  /** The edge needs no TLS: it is on this machine. */
  async #dialEdge(): Promise<SocketChannel> {
    const { edge } = this.#context.platform!;
    const localAddress = edgeSourceOf(edge.address, this.#sandbox.slot.proxyAddress);
    const channel = await connect(edge.address, edge.port, {
      ...(localAddress !== undefined && { localAddress }),
      signal: this.#cancel.signal,
      account: this.#account,
    });
    this.#dialled = { channel, address: undefined };
    return channel;
  }

  async #dial(target: Target, mayReach: (octets: Uint8Array) => boolean): Promise<SocketChannel> {
    const { policy, slot } = this.#sandbox;
    const options = {
      resolver: this.#context.resolver,
      account: this.#account,
      localAddress: slot.proxyAddress,
      egressProxy: policy.source.egressProxy,
      mayReach,
      signal: this.#cancel.signal,
    };
    const dialled = await this.#reach(target, options);
    if (this.#cancel.signal.aborted) {
      dialled.channel.abort();
      throw new AtollError('canceled', 'the client has gone');
    }
    this.#dialled = dialled;
    return dialled.channel;
  }

  #deny(rule: string): void {
    const { address, port } = this.#destination;
    this.#sandbox.deny({ host: this.#asked?.name ?? this.#asked?.meant ?? address, port, rule });
    this.#client.abort();
  }

  /** A failure to reach something is no denial, unless the policy caused it. */
  #fail(error: unknown): void {
    this.#client.abort();
    this.#dialled?.channel.abort();
    if (error instanceof AtollError && error.code === 'forbidden') this.#deny(messageOf(error));
  }
}

/**
 * The loopback address from which a sandbox's requests come to the edge, so that they count for the sandbox alone and
 * not as this machine's own; undefined if the edge is not on the loopback.
 */
function edgeSourceOf(edgeAddress: string, proxyAddress: string): string | undefined {
  return edgeAddress.startsWith('127.') ? proxyAddress.replace(/^\d+/, '127') : undefined;
}
