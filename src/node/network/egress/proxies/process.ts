import type { Log } from '../../../../base/telemetry/log.ts';
import type { EgressPolicy } from '../../../../protocol/network/network.ts';
import { spawnProxy, type ProxyChild } from './child.ts';
import { FirstStart } from './first-start.ts';
import type { Denial, ProxySettings, ToProxy } from './messages.ts';
import { createWatch, type Watch } from './watch.ts';

/** How long a proxy may take to end when told to. */
const endTimeoutMs = 2_000;
/**
 * How long a proxy may take to put a policy in force. After that it is replaced, so that no connection lives on under
 * the old one.
 */
const setTimeoutMs = 3_000;
/**
 * How long the end of a sandbox waits until its connections are cut. A stalled proxy is replaced, which cuts them too.
 */
const removeTimeoutMs = 250;
/** How long calls wait for the first start of a proxy. */
const firstStartWaits = { startMs: 20_000, laterMs: setTimeoutMs };
/** How long to wait before an ended proxy is started again; doubled each time until one has run for a while. */
const restartDelayMs = { first: 100, max: 5_000, steadyAfter: 30_000 } as const;
/** How many faults of one process are logged. */
const faultsLoggedMax = 20;

/** An egress proxy, in a process of its own that is replaced when it ends or stalls. */
export type Proxy = {
  /** Whether it was told a policy of the slot's sandbox, and so may have connections of that sandbox. */
  knows(slot: number): boolean;
  /**
   * Tells it the policy of a sandbox. When this resolves, the policy is in force and connections that it denies are
   * cut; if the process is replaced meanwhile, all of them are cut. Fails if no proxy could be started yet; then none
   * knows the slot.
   */
  set(slot: number, policy: EgressPolicy): Promise<void>;
  /** Ends all connections of a sandbox. */
  remove(slot: number): Promise<void>;
  stop(): Promise<void>;
};

/** What a proxy is started with. `onDenied` gets what was refused to a slot: how often, and a sample. */
export type ProxyOptions = {
  settings: ProxySettings;
  log: Log;
  onDenied(slot: number, count: number, sample: Denial[]): void;
};

/** A process that serves, or will. */
type Serving = { child: ProxyChild; watch: Watch; answers: Answers; ready: boolean };

/** Callers that wait for an answer of one process. The end of the process counts as an answer, too. */
class Answers {
  readonly #waiting = new Map<number, () => void>();
  #lastId = 0;

  /** Begins a question and answers its number. */
  expect(answered: () => void): number {
    this.#waiting.set(++this.#lastId, answered);
    return this.#lastId;
  }

  settle(id: number): void {
    const answered = this.#waiting.get(id);
    this.#waiting.delete(id);
    answered?.();
  }

  settleAll(): void {
    for (const id of [...this.#waiting.keys()]) this.settle(id);
  }
}

/** Starts the proxy in the background; the first calls wait for it. */
export function startProxy({ settings, log, onDenied }: ProxyOptions, waits = firstStartWaits): Proxy {
  const policies = new Map<number, EgressPolicy>();
  let stopping = false;
  let delayMs: number = restartDelayMs.first;
  const firstStart = new FirstStart(waits);
  let serving = launch();

  function launch(): Serving {
    return launchProxy({
      settings,
      log,
      onDenied,
      onReady(child) {
        for (const [slot, policy] of policies) child.send({ kind: 'set', id: 0, slot, policy });
        firstStart.succeed();
      },
      onFailed: reason => firstStart.fail(reason),
      onEnd(lifeMs) {
        if (stopping) return;
        log.error('the egress proxy has ended and is started again');
        const steady = lifeMs > restartDelayMs.steadyAfter;
        delayMs = steady ? restartDelayMs.first : Math.min(delayMs * 2, restartDelayMs.max);
        setTimeout(() => !stopping && (serving = launch()), steady ? 0 : delayMs);
      },
    });
  }

  /**
   * Resolves when the process has done it, or has ended. A process that is not ready yet learns everything once it is.
   */
  const ask = (message: (id: number) => ToProxy) =>
    new Promise<void>(resolve => {
      const { ready, child, answers } = serving;
      if (ready) child.send(message(answers.expect(resolve)));
      else resolve();
    });

  return {
    knows: slot => policies.has(slot),
    async set(slot, policy) {
      policies.set(slot, policy);
      await firstStart.wait().catch(error => {
        policies.delete(slot);
        throw error;
      });
      const { child } = serving;
      const timer = setTimeout(() => {
        log.error('the egress proxy does not take a policy and is replaced');
        child.kill('SIGKILL');
      }, setTimeoutMs);
      await ask(id => ({ kind: 'set', id, slot, policy }));
      clearTimeout(timer);
    },
    async remove(slot) {
      if (!policies.delete(slot)) return;
      const done = ask(id => ({ kind: 'remove', id, slot }));
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, removeTimeoutMs);
      await Promise.race([done, late.promise]);
      clearTimeout(timer);
    },
    async stop() {
      stopping = true;
      const { child, watch } = serving;
      watch.stop();
      child.disconnect();
      const killer = setTimeout(() => child.kill('SIGKILL'), endTimeoutMs);
      await child.exited;
      clearTimeout(killer);
    },
  };
}

type Launch = ProxyOptions & {
  onReady(child: ProxyChild): void;
  onFailed(reason: string): void;
  onEnd(lifeMs: number): void;
};

/**
 * Starts one process, watches it, and ends it when it stalls. Reports its end once, with its lifetime in milliseconds.
 */
function launchProxy({ settings, log, onDenied, onReady, onFailed, onEnd }: Launch): Serving {
  const startedAt = performance.now();
  const answers = new Answers();
  let faults = 0;
  const child = spawnProxy({
    onMessage(message) {
      if (message.kind === 'ready') beginToServe();
      else if (message.kind === 'failed') {
        onFailed(message.message);
        log.error('the egress proxy did not start', { reason: message.message });
        child.kill('SIGKILL');
      } else if (message.kind === 'denied') onDenied(message.slot, message.count, message.sample);
      else if (message.kind === 'done') answers.settle(message.id);
      else if (++faults <= faultsLoggedMax)
        log.error('the egress proxy has failed at something', { fault: message.message });
    },
    onExit() {
      serving.ready = false;
      serving.watch.stop();
      answers.settleAll();
      onEnd(performance.now() - startedAt);
    },
  });
  const watch = createWatch({
    pid: child.pid,
    ask: answered => child.send({ kind: 'ping', id: answers.expect(answered) }),
    onStall(reason) {
      log.error('the egress proxy has stalled and is replaced', { reason });
      child.kill('SIGKILL');
    },
  });
  const serving: Serving = { child, watch, answers, ready: false };
  child.send({ kind: 'start', settings });
  return serving;

  function beginToServe(): void {
    serving.ready = true;
    onReady(child);
    serving.watch.start();
  }
}
