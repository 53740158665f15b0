import { randomInt } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { AtollError } from '../../../../../base/error.ts';
import type { Account } from '../target.ts';
import { Gathered } from '../gathered.ts';
import { answers, readAnswer, recordType, responseCode, writeQuery, type Query } from './message.ts';

/** How long one server may take to answer; then the next one is asked. */
const serverTimeoutMs = 2_500;
/** How often the resolver goes through the list of servers. */
const rounds = 2;
/** For how many names addresses are kept. */
const cacheEntriesMax = 4096;
/** Addresses are kept for at most this long, whatever their owner says. */
const keptSecondsMax = 300;
/**
 * How long it is kept that a name has no address. That no server answered is not kept: it may be one sandbox's bad
 * luck.
 */
const failureKeptSeconds = 5;
const tcpAnswerBytesMax = 64 << 10;

/** A name server of the platform. */
type NameServer = { address: string; port: number };

/** Looks up addresses of names. */
export type Resolver = {
  /**
   * The IPv4 addresses of a host name, at least one, kept for as long as their owner says. Errors: `not_found` if it
   * has none, `unavailable` if no server answers, `forbidden` if the account has no descriptor left.
   */
  resolve(name: string, account: Account): Promise<string[]>;
  /** Passes a question on and answers the server's message. Errors: `unavailable`, `forbidden`. */
  ask(query: Query, account: Account): Promise<Buffer>;
};

/** Connections of one question; each settles when its socket is closed. */
type Connecting = Promise<void>[];

type Kept = { until: number; addresses: Promise<string[]> };

/** Asks these servers, the next one if one does not answer. */
export function createResolver(servers: NameServer[]): Resolver {
  const kept = new LRUCache<string, Kept>({ max: cacheEntriesMax });

  const ask = async (query: Omit<Query, 'id'>, connecting: Connecting): Promise<Buffer> => {
    for (let round = 0; round < rounds; round++) {
      for (const server of servers) {
        const question = { ...query, id: randomInt(0x10000) };
        const answer = await askServer(server, question, connecting).catch(() => undefined);
        if (!answer) continue;
        const { code } = readAnswer(answer);
        if (code !== responseCode.failure && code !== responseCode.refused) return answer;
      }
    }
    throw new AtollError('unavailable', `no name server answers for ${query.name}`);
  };

  const lookUp = async (name: string, entry: Kept, connecting: Connecting): Promise<string[]> => {
    try {
      const question = { name, type: recordType.A, udpBytesMax: 0, extended: true, wantsSignatures: false };
      const answer = readAnswer(await ask(question, connecting));
      if (answer.addresses.length === 0) throw new AtollError('not_found', `${name} has no IPv4 address`);
      entry.until = Date.now() + Math.min(answer.ttlSeconds, keptSecondsMax) * 1000;
      return answer.addresses;
    } catch (error) {
      entry.until =
        error instanceof AtollError && error.code === 'not_found' ? Date.now() + failureKeptSeconds * 1000 : 0;
      throw error;
    }
  };

  /** One question uses one socket at a time; sockets that nobody waits for any more count until they are closed. */
  const onAccount = async <T>(account: Account, work: (connecting: Connecting) => Promise<T>): Promise<T> => {
    const release = account.take();
    if (!release) throw new AtollError('forbidden', 'the sandbox has as many questions open as it may');
    const connecting: Connecting = [];
    return await work(connecting).finally(() => void Promise.all(connecting).then(release));
  };

  return {
    ask: (query, account) => onAccount(account, connecting => ask(query, connecting)),
    async resolve(name, account) {
      const known = kept.get(name);
      if (known && known.until > Date.now()) return await known.addresses;
      return await onAccount(account, connecting => lookUpAnew(name, connecting));
    },
  };

  /** Callers wait for a lookup of the same name that is already under way. */
  function lookUpAnew(name: string, connecting: Connecting): Promise<string[]> {
    const entry: Kept = { until: Number.POSITIVE_INFINITY, addresses: Promise.resolve([]) };
    entry.addresses = lookUp(name, entry, connecting);
    entry.addresses.catch(() => {}); // callers that wait for it get the error
    kept.set(name, entry);
    return entry.addresses;
  }
}

/** Asks by UDP, and by TCP if the answer is too long for that. */
async function askServer(server: NameServer, query: Query, connecting: Connecting): Promise<Buffer> {
  const answer = await askByUdp(server, query);
  return readAnswer(answer).truncated ? await askByTcp(server, query, connecting) : answer;
}

/** Asks one question from a port of its own, on a socket that accepts answers only from that server. */
async function askByUdp(server: NameServer, query: Query): Promise<Buffer> {
  const answer = Promise.withResolvers<Buffer>();
  answer.promise.catch(() => {}); // it may fail while nobody waits for it yet
  const socket = await Bun.udpSocket({
    connect: { hostname: server.address, port: server.port },
    socket: {
      data(_, bytes) {
        if (answers(bytes, query)) answer.resolve(bytes);
      },
      error: (_, error) => answer.reject(error),
    },
  });
  const timer = setTimeout(() => answer.reject(new Error('no answer in time')), serverTimeoutMs);
  try {
    socket.send(writeQuery(query));
    return await answer.promise;
  } finally {
    clearTimeout(timer);
    socket.close();
  }
}

/** Connecting counts towards the time that a server has. A connection that comes up later belongs to nobody. */
async function askByTcp(server: NameServer, query: Query, connecting: Connecting): Promise<Buffer> {
  const answer = Promise.withResolvers<Buffer>();
  const fail = (reason: string) => answer.reject(new AtollError('unavailable', `a name server ${reason}`));
  const timer = setTimeout(() => fail('did not answer in time'), serverTimeoutMs);
  const over = answer.promise.then(
    () => clearTimeout(timer),
    () => clearTimeout(timer),
  );
  const have = new Gathered();
  const connected = Bun.connect({
    hostname: server.address,
    port: server.port,
    socket: {
      open(socket) {
        const question = writeQuery(query);
        socket.write(Buffer.concat([Buffer.of(question.length >> 8, question.length & 255), question]));
      },
      data(_, part) {
        have.append(part);
        const { bytes } = have;
        const whole = bytes.length >= 2 && bytes.length >= 2 + bytes.readUInt16BE(0);
        if (whole && answers(bytes.subarray(2), query)) answer.resolve(bytes.subarray(2, 2 + bytes.readUInt16BE(0)));
        else if (whole || bytes.length > tcpAnswerBytesMax + 2) fail('answered something else');
      },
      close: () => fail('closed the connection'),
      error() {},
      connectError() {}, // the promise reports it
    },
  });
  connecting.push(
    connected.then(
      socket => over.then(() => socket.terminate()),
      () => fail('takes no connection'),
    ),
  );
  return await answer.promise;
}
