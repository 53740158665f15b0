import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { agentPort, controlTokenHeader } from '../../protocol/agent.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { dial } from '../network/dial.ts';
import { createLineReader } from './lines.ts';
import { LogIntake, type LogSink } from './log-intake.ts';
import { pause } from './pause.ts';
import { type AgentConnection, type AgentRequest, type AgentStream, openStream } from './stream.ts';

/** A sandbox that lives for a moment only is never asked. */
const firstDelayMs = 20;
/** Between two attempts: an agent that was killed is there again soon, one that nobody can revive is not worth much. */
const retryMs = { min: 200, max: 30_000 } as const;
/** An open connection wakes the agent every second. Where it has nothing to report for this long, it is let be, */
const quietMs = 5_000;
/** and asked again when somebody comes to the sandbox, when somebody reads its log, and this often. */
const askEveryMs = 10 * 60_000;
/** How long an agent that is asked may take: it may be frozen. */
const answerMsMax = 200;
/** And how long until it has reported what there is, whatever it sends: a change of its sandbox may wait for it. */
const reportMsMax = 2_000;

/** The agent whose log is followed. */
type FollowedAgent = {
  sandboxId: string;
  namespace: NetworkNamespace;
  controlToken: string;
  /** When its sandbox was created, for one that is new; see `LogIntake`. */
  createdMs: number | undefined;
};

/** When a quiet agent is let be and asked again, in milliseconds. */
export type FollowTimes = { quietMs: number; askEveryMs: number };

/** Hands what an agent logs to a sink, for as long as its sandbox lasts or until it is stopped. */
export class LogFollower {
  readonly #followed: FollowedAgent;
  readonly #sink: LogSink;
  readonly #log: Log;
  readonly #times: FollowTimes;
  readonly #intake: LogIntake;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;
  /** A connection that stays open for what will be logged. */
  #connection: AgentStream | undefined;
  /** Ends the rest of an agent that was quiet. */
  #resting: AbortController | undefined;
  /** Nobody has come to the sandbox so far: its agent has nothing to report that it has not said. */
  #wasVisited = false;

  constructor(followed: FollowedAgent, sink: LogSink, log: Log, times: FollowTimes = { quietMs, askEveryMs }) {
    this.#followed = followed;
    this.#sink = sink;
    this.#log = log;
    this.#times = times;
    this.#intake = new LogIntake(sink, followed.createdMs);
    this.#ended = this.#follow();
  }

  /** Somebody has come to the sandbox: its agent will have something to report. */
  wake(): void {
    this.#wasVisited = true;
    this.#resting?.abort();
  }

  /** Resolves when the sink has what the agent has to report now, or it did not answer soon. */
  async catchUp(): Promise<void> {
    if (this.#resting && !this.#stopping.signal.aborted) await this.#try({ once: true });
  }

  /**
   * The same, with what the agent was told of last: its client may have heard before that was on its way to us. For
   * the end, and when the sandbox changes.
   */
  async complete(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    // What the sink has had of one that was there before is not known at once.
    const isPlaced = this.#followed.createdMs !== undefined || this.#intake.place !== undefined;
    if (this.#resting || (this.#wasVisited && isPlaced)) await this.#try({ once: true });
  }

  /** Takes what has come, and stops. From then on nothing holds the sandbox's network. */
  async stop(): Promise<void> {
    // What the agent said before whoever stops it was told is in the connection already. It is read between two turns
    // of the loop: the first may come before anything is.
    for (let turn = 0; this.#connection && turn < 2; turn++) await new Promise(resolve => setImmediate(resolve));
    this.#stopping.abort();
    await this.#ended;
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping;
    await pause(firstDelayMs, signal);
    if (this.#followed.createdMs === undefined && !signal.aborted) this.#intake.place = await this.#sink.place();
    for (let delayMs: number = retryMs.min; !signal.aborted; delayMs = Math.min(delayMs * 2, retryMs.max)) {
      const startedAt = performance.now();
      const isQuiet = (await this.#try({ once: false })) === 'quiet';
      if (isQuiet || performance.now() - startedAt > retryMs.max) delayMs = retryMs.min;
      if (isQuiet) await this.#rest();
      else await pause(delayMs, signal);
      this.#resting = undefined;
    }
  }

  /** Waits until there is something to report again, or may be. */
  async #rest(): Promise<void> {
    const { signal } = this.#stopping;
    const known = this.#intake.place?.number;
    do {
      this.#resting = new AbortController();
      await pause(this.#times.askEveryMs, AbortSignal.any([signal, this.#resting.signal]));
      if (this.#resting.signal.aborted || signal.aborted) return;
      await this.#try({ once: true });
    } while (this.#intake.place?.number === known);
  }

  async #try(options: { once: boolean }): Promise<'quiet' | 'ended'> {
    try {
      return await this.#stream(options);
    } catch (error) {
      if (!this.#stopping.signal.aborted) {
        const { sandboxId } = this.#followed;
        this.#log.debug('the log of an agent can not be read', { sandboxId, error: messageOf(error) });
      }
      return 'ended';
    }
  }

  /**
   * One connection, to its end: the agent's, or ours when it has reported nothing for a while. Answers whether that was
   * why. `once`: until the agent has reported what there is, or has had its time for that.
   */
  async #stream({ once }: { once: boolean }): Promise<'quiet' | 'ended'> {
    const { signal } = this.#stopping;
    const fd = await dial(this.#followed.namespace, agentPort, signal);
    let heardAt = performance.now();
    const read = createLineReader(line => this.#intake.take(line));
    const stream = await openStream(fd, this.#request(once), {
      signal,
      ...(once && { timeoutMs: reportMsMax }),
      onBytes: () => {
        heardAt = performance.now();
        this.#intake.beginSecond();
      },
      onData: piece => {
        this.#intake.countPiece();
        read(piece);
        return 'more';
      },
      afterBytes: (count, connection) => {
        const waitMs = this.#intake.count(count);
        if (waitMs > 0) this.#hold(connection, waitMs);
      },
    });
    if (!once) this.#connection = stream;
    const quiet = Promise.withResolvers<'quiet'>();
    const patienceMs = once ? answerMsMax : this.#times.quietMs;
    const watch = setInterval(() => {
      if (this.#intake.hasRoom && performance.now() - heardAt >= patienceMs) quiet.resolve('quiet');
    }, patienceMs);
    watch.unref();
    try {
      return await Promise.race([stream.ended.then(() => 'ended' as const), quiet.promise]);
    } finally {
      clearInterval(watch);
      stream.close();
      if (!once) this.#connection = undefined;
    }
  }

  /** Reads no more of a connection for a while. */
  #hold(connection: AgentConnection, ms: number): void {
    connection.pause();
    const goOn = () => {
      this.#intake.beginSecond();
      connection.resume();
    };
    setTimeout(goOn, ms).unref();
  }

  #request(once: boolean): AgentRequest {
    const { place } = this.#intake;
    const query = new URLSearchParams({
      ...(place && { epoch: place.epoch, after: String(place.number) }),
      ...(once && { once: '1' }),
    }).toString();
    return {
      method: 'GET',
      path: `/logs${query && `?${query}`}`,
      fields: [
        { name: controlTokenHeader, value: this.#followed.controlToken },
        ...(once ? [{ name: 'Connection', value: 'close' }] : []),
      ],
    };
  }
}
