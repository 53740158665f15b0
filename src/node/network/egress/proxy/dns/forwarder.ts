import type { PlatformInside } from '../../messages.ts';
import type { Guest, Guests } from '../guests.ts';
import { isSandboxHost } from '../platform.ts';
import { addressAnswer, answerFor, emptyAnswer, parseQuery, recordType, responseCode, udpBytesMax, type Query } from './message.ts';
import type { Resolver } from './resolver.ts';

/** Questions of one sandbox that are open at a time; more are dropped, and asked again by the client. */
const lookupsMax = 64;
/** Connections of one kind are closed when nothing was asked for this long. */
const idleTimeoutSeconds = 10;
const tcpMessageBytesMax = 4096;
/** How long clients may keep the platform's address. */
const platformTtlSeconds = 60;
const tcpAnswerBytesMax = 0xffff;

export type ForwarderOptions = { hostname: string; port: number; guests: Guests; resolver: Resolver; platform: PlatformInside | undefined };

/**
 * Answers the questions that sandboxes ask at port 53 of their resolvers. Where a policy names domains, only those can be
 * asked for: a name that nobody may reach would be a way out by itself, to whoever answers for it.
 */
export async function startForwarder(options: ForwarderOptions): Promise<void> {
  const { hostname, port, guests } = options;
  await Bun.udpSocket({
    hostname,
    port,
    socket: {
      async data(socket, bytes, fromPort, from) {
        const guest = guests.at(from);
        const query = guest && parseQuery(bytes);
        if (!query) return;
        const answer = await answerTo(guest, query, options);
        if (answer) socket.send(answerFor(query, answer, Math.min(query.udpBytesMax, udpBytesMax)), fromPort, from);
      },
      error() {}, // a client that is gone
    },
  });
  Bun.listen<{ bytes: Buffer; busy: boolean }>({
    hostname,
    port,
    socket: {
      open(socket) {
        socket.data = { bytes: Buffer.alloc(0), busy: false };
        socket.timeout(idleTimeoutSeconds);
        if (!guests.at(socket.remoteAddress)) socket.terminate();
      },
      async data(socket, part) {
        const state = socket.data;
        state.bytes = Buffer.concat([state.bytes, part]);
        if (state.bytes.length > 2 * tcpMessageBytesMax) return void socket.terminate();
        if (state.busy) return;
        state.busy = true;
        await answerAll(socket, state, options);
        state.busy = false;
      },
      timeout: socket => void socket.terminate(),
      error() {},
    },
  });
}

/** Answers the questions on a connection, one after the other (RFC 7766). */
async function answerAll(socket: Bun.Socket<unknown>, state: { bytes: Buffer }, options: ForwarderOptions): Promise<void> {
  for (;;) {
    const length = state.bytes.length >= 2 ? state.bytes.readUInt16BE(0) : tcpMessageBytesMax;
    if (length > tcpMessageBytesMax) return void socket.terminate();
    if (state.bytes.length < 2 + length) return;
    const query = parseQuery(state.bytes.subarray(2, 2 + length));
    state.bytes = state.bytes.subarray(2 + length);
    const guest = options.guests.at(socket.remoteAddress);
    if (!query || !guest) return void socket.terminate();
    const answer = await answerTo(guest, query, options);
    if (!answer) return void socket.terminate();
    const message = answerFor(query, answer, tcpAnswerBytesMax);
    socket.write(Buffer.concat([Buffer.of(message.length >> 8, message.length & 255), message]));
    socket.timeout(idleTimeoutSeconds);
  }
}

async function answerTo(guest: Guest, query: Query, { resolver, platform }: ForwarderOptions): Promise<Buffer | undefined> {
  const { policy } = guest;
  const rule = refusalOf(guest, query);
  if (rule !== undefined) {
    guest.deny({ host: query.name, port: 53, rule });
    return emptyAnswer(query, responseCode.refused);
  }
  if (platform && isSandboxHost(platform, query.name)) {
    return query.type === recordType.A ? addressAnswer(query, [platform.insideAddress], platformTtlSeconds) : emptyAnswer(query, responseCode.ok);
  }
  // They would tell clients how to hide the server name (ECH) or to use QUIC, neither of which is let through.
  if (policy.domains.length > 0 && (query.type === recordType.HTTPS || query.type === recordType.SVCB)) return emptyAnswer(query, responseCode.ok);
  if (guest.lookups >= lookupsMax) return undefined;
  guest.lookups++;
  try {
    return await resolver.ask(query);
  } catch {
    return emptyAnswer(query, responseCode.failure);
  } finally {
    guest.lookups--;
  }
}

/** The rule against looking the name up, if there is one. */
function refusalOf({ policy }: Guest, query: Query): string | undefined {
  if (policy.domains.length === 0) return undefined;
  if (query.type === recordType.ANY) return 'no questions for all records';
  return policy.byName(query.name)?.allowed || policy.headersFor(query.name) ? undefined : policy.fallback;
}
