import { messageOf } from '../../base/error.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { agentPort, controlTokenHeader } from '../../protocol/agent.ts';
import type { NetworkNamespace } from '../native/netns.ts';
import { dial } from '../network/dial.ts';
import { createLineReader } from './lines.ts';
import { LogIntake, type LogSink } from './log-intake.ts';
import { pause } from './pause.ts';
import { type AgentConnection, type AgentRequest, type AgentStream, openStream } from './stream.ts';

/** So that a sandbox which lives only for a moment is never asked. */
const firstDelayMs = 20;
/**
 * Pause between two attempts: a killed agent is soon back, and one that can't be revived is not worth many attempts.
 */
const retryMs = { min: 200, max: 30_000 } as const;
/** An open connection wakes the agent every second. After this long without a report, the agent is left alone; */
const quietMs = 5_000;
/** it is asked again when somebody uses the sandbox, when somebody reads its log, and this often. */
const askEveryMs = 10 * 60_000;
/** How long an agent that is asked may take: it may be frozen. */
const answerMsMax = 200;
/** And how long until it has reported what it has, however much it sends: a change of its sandbox may wait for it. */
const reportMsMax = 2_000;

/** The agent whose log is followed. */
type FollowedAgent = {
  sandboxId: string;
  namespace: NetworkNamespace;
  controlToken: string;
  /** When its sandbox was created, if it is new; see `LogIntake`. */
  createdMs: number | undefined;
};

/** After how long a quiet agent is left alone, and how often it is asked again, in milliseconds. */
export type FollowTimes = { quietMs: number; askEveryMs: number };

/** Hands what an agent logs to a sink, while its sandbox lasts and until it is stopped. */
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
  /** Ends the pause after which a quiet agent is asked again. */
  #resting: AbortController | undefined;
  /** False while nobody has used the sandbox: its agent then has nothing new to report. */
  #wasVisited = false;

  constructor(followed: FollowedAgent, sink: LogSink, log: Log, times: FollowTimes = { quietMs, askEveryMs }) {
    this.#followed = followed;
    this.#sink = sink;
    this.#log = log;
    this.#times = times;
    this.#intake = new LogIntake(sink, followed.createdMs);
    this.#ended = this.#follow();
  }

  /** Called when somebody uses the sandbox: its agent will have something to report. */
  wake(): void {
    this.#wasVisited = true;
    this.#resting?.abort();
  }

  /** Resolves when the sink has what the agent has to report now, or when the agent did not answer soon. */
  async catchUp(): Promise<void> {
    if (this.#resting && !this.#stopping.signal.aborted) await this.#try({ once: true });
  }

  /**
   * The same, including what the agent was told last: its client may have heard of that before it was on its way here.
   * For the end, and for changes of the sandbox.
   */
  async complete(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    // What the sink already has of an agent that was there before is not known at once.
    const isPlaced = this.#followed.createdMs !== undefined || this.#intake.place !== undefined;
    if (this.#resting || (this.#wasVisited && isPlaced)) await this.#try({ once: true });
  }

  /** Takes what has come, and stops. After that, nothing holds the sandbox's network. */
  async stop(): Promise<void> {
    // What the agent said before the stop was asked for is already in the connection. It is read between two turns of
    // the event loop: the first turn may come before any of it was read.
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

  /** Waits until there is, or may be, something to report again. */
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
   * Follows one connection to its end: the agent ends it, or this follower does after a while without a report; the
   * answer says which. With `once`, it also ends when the agent has reported what it has, or has used up its time for
   * that.
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

  /** Pauses reading from a connection. */
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
