import type { PlatformInside } from '../../proxies/messages.ts';
import { SocketChannel, channelHandlers } from '../channel.ts';
import type { Descriptors } from '../shares/descriptors.ts';
import type { Account } from '../target.ts';
import { Gathered } from '../gathered.ts';
import type { ProxiedSandbox, ProxiedSandboxes } from '../sandboxes.ts';
import { isSandboxHost } from '../platform.ts';
import { refusalOf } from './refused-names.ts';
import {
  addressAnswer,
  answerFor,
  emptyAnswer,
  parseQuery,
  recordType,
  responseCode,
  udpBytesMax,
  type Query,
} from './message.ts';
import type { Resolver } from './resolver.ts';

/** Open questions of one sandbox at a time; more are dropped, and the client asks again. */
const lookupsMax = 64;
/** Connections of one sandbox at a time that ask for names; more are closed. */
export const dnsConnectionsMax = 16;
/** Such a connection is closed when nothing was asked for this long. */
const idleTimeoutSeconds = 10;
/** Longest question. */
const questionBytesMax = 4096;
/** How long clients may keep the platform's address. */
const platformTtlSeconds = 60;
const tcpAnswerBytesMax = 0xffff;

/** What the resolver of sandboxes answers with. */
type ForwarderOptions = {
  hostname: string;
  port: number;
  sandboxes: ProxiedSandboxes;
  resolver: Resolver;
  descriptors: Descriptors;
  platform: PlatformInside | undefined;
  /** The addresses that sandboxes ask, as octets: the packet rules redirect questions for these to the forwarder. */
  resolvers: Uint8Array[];
};

/** Answers the questions that sandboxes ask at port 53 of their resolvers, except for those of refused-names.ts. */
export async function startForwarder(options: ForwarderOptions): Promise<void> {
  await takeDatagrams(options);
  takeConnections(options);
}

async function takeDatagrams(options: ForwarderOptions): Promise<void> {
  const { hostname, port, sandboxes } = options;
  await Bun.udpSocket({
    hostname,
    port,
    socket: {
      async data(socket, bytes, fromPort, from) {
        const sandbox = sandboxes.at(from);
        if (!sandbox || bytes.length > questionBytesMax) return;
        try {
          const query = parseQuery(bytes);
          const answer = query && (await answerTo(sandbox, query, options));
          if (answer) socket.send(answerFor(query, answer, Math.min(query.udpBytesMax, udpBytesMax)), fromPort, from);
        } catch {
          // The client is gone, or its packets no longer pass: nobody waits for the answer.
        }
      },
      error() {}, // a client that is gone
    },
  });
}

function takeConnections(options: ForwarderOptions): void {
  const { hostname, port, sandboxes, descriptors } = options;
  Bun.listen<SocketChannel>({
    hostname,
    port,
    allowHalfOpen: true,
    socket: {
      ...channelHandlers,
      open(socket) {
        const sandbox = sandboxes.at(socket.remoteAddress);
        const channel = (socket.data = new SocketChannel(socket, sandbox?.share));
        const release = sandbox && sandbox.dnsConnections < dnsConnectionsMax ? descriptors.take(sandbox) : undefined;
        if (!sandbox || !release) return void socket.terminate();
        sandbox.dnsConnections++;
        channel.whenGone = () => {
          sandbox.dnsConnections--;
          release();
        };
        socket.timeout(idleTimeoutSeconds);
        answerOn(channel, options);
      },
      timeout: socket => void socket.terminate(),
    },
  });
}

/**
 * Answers the questions on a connection one after the other (RFC 7766): the next one once the last answer has been
 * taken.
 */
function answerOn(channel: SocketChannel, options: ForwarderOptions): void {
  const have = new Gathered();
  let busy = false;
  let ended = false;
  let taken = Promise.withResolvers<void>();

  const answerAll = async () => {
    while (have.length >= 2) {
      const length = have.bytes.readUInt16BE(0);
      if (length > questionBytesMax) return channel.abort();
      if (have.length < 2 + length) return;
      const query = parseQuery(have.take(2 + length).subarray(2));
      const sandbox = options.sandboxes.at(channel.socket.remoteAddress);
      const answer = query && sandbox && (await answerTo(sandbox, query, options));
      if (!answer || channel.isClosed) return channel.abort();
      const message = answerFor(query, answer, tcpAnswerBytesMax);
      taken = Promise.withResolvers();
      if (!channel.write(Buffer.concat([Buffer.of(message.length >> 8, message.length & 255), message])))
        await taken.promise;
      channel.socket.timeout(idleTimeoutSeconds);
    }
  };

  channel.use({
    data(bytes) {
      have.append(bytes);
      if (have.length > 2 * questionBytesMax) return channel.abort();
      if (busy) return;
      busy = true;
      answerAll().then(
        () => {
          busy = false;
          if (ended) channel.end();
        },
        () => channel.abort(),
      );
    },
    drained: () => taken.resolve(),
    ended() {
      ended = true;
      if (!busy) channel.end();
    },
    closed: () => taken.resolve(),
  });
}

async function answerTo(
  sandbox: ProxiedSandbox,
  query: Query,
  { resolver, platform, descriptors, resolvers }: ForwarderOptions,
): Promise<Buffer | undefined> {
  const { policy } = sandbox;
  const rule = refusalOf(policy, query, resolvers);
  if (rule !== undefined) {
    sandbox.deny({ host: query.name, port: 53, rule });
    return emptyAnswer(query, responseCode.refused);
  }
  if (platform && isSandboxHost(platform, query.name)) {
    return query.type === recordType.A
      ? addressAnswer(query, [platform.insideAddress], platformTtlSeconds)
      : emptyAnswer(query, responseCode.ok);
  }
  // These records tell clients how to hide the server name (ECH) or to use QUIC, and neither is let through.
  if (policy.domains.length > 0 && (query.type === recordType.HTTPS || query.type === recordType.SVCB))
    return emptyAnswer(query, responseCode.ok);
  if (sandbox.lookups >= lookupsMax || !sandbox.questions.take()) return undefined;
  const account: Account = { share: sandbox.share, take: () => descriptors.take(sandbox) };
  sandbox.lookups++;
  try {
    return await resolver.ask(query, account);
  } catch {
    // No resolver answered in time: the client hears so, and asks again.
    return emptyAnswer(query, responseCode.failure);
  } finally {
    sandbox.lookups--;
  }
}
