import { fileURLToPath } from 'node:url';
import { AtollError } from '../../../base/error.ts';
import type { Log } from '../../../base/log.ts';
import type { EgressPolicy } from '../../../protocol/network.ts';
import { readFromProxy, type Denial, type FromProxy, type ProxySettings, type ToProxy } from './messages.ts';
import { createWatch, type Watch } from './watch.ts';

const startTimeoutMs = 20_000;
/** How long a proxy that is told to end may take. */
const endTimeoutMs = 2_000;
/** How long a proxy may take to put a policy in force. Then it is replaced: no connection goes on under the old one. */
const setTimeoutMs = 3_000;
/** How long the end of a sandbox waits for its connections to be cut. A stalled proxy is replaced, which cuts them too. */
const removeTimeoutMs = 250;
/** How long to wait before a proxy that has ended is started again; doubled each time until one has run for a while. */
const restartDelayMs = { first: 100, max: 5_000, steadyAfter: 30_000 } as const;
/** Faults of one process that are logged. */
const faultsLoggedMax = 20;

/** An egress proxy, in a process of its own that is replaced when it ends or stalls. */
export type Proxy = {
  /**
   * Tells it the policy of a sandbox. When it resolves, the policy holds and connections that it denies are cut; where the
   * process is replaced meanwhile, all of them are. Fails where no proxy could ever be started.
   */
  set(slot: number, policy: EgressPolicy): Promise<void>;
  /** Ends all connections of a sandbox. */
  remove(slot: number): Promise<void>;
  stop(): Promise<void>;
};

export type ProxyOptions = {
  settings: ProxySettings;
  log: Log;
  onDenied(slot: number, count: number, sample: Denial[]): void;
};

type Child = { readonly pid: number; send(message: ToProxy): void; disconnect(): void; kill(signal: NodeJS.Signals): void; exited: Promise<number> };

/** A process that serves, or will. */
type Serving = { child: Child; watch: Watch; ready: boolean };

/** Starts the proxy in the background; the first calls wait for it. */
export function startProxy({ settings, log, onDenied }: ProxyOptions): Proxy {
  const policies = new Map<number, EgressPolicy>();
  /** Who waits for an answer of the present process. Its end is an answer, too. */
  const waiting = new Map<number, () => void>();
  let lastId = 0;
  let stopping = false;
  let delayMs: number = restartDelayMs.first;
  const started = Promise.withResolvers<void>();
  const startTimer = setTimeout(() => started.reject(new AtollError('unavailable', 'the egress proxy did not start in time')), startTimeoutMs);
  started.promise.catch(() => {}); // whoever calls hears it
  let serving = launch();

  function launch(): Serving {
    const startedAt = performance.now();
    let faults = 0;
    const child = spawn({
      onMessage(message) {
        if (message.kind === 'ready') beginToServe();
        else if (message.kind === 'failed') {
          log.error('the egress proxy did not start', { reason: message.message });
          child.kill('SIGKILL');
        } else if (message.kind === 'denied') onDenied(message.slot, message.count, message.sample);
        else if (message.kind === 'done') settle(message.id);
        else if (++faults <= faultsLoggedMax) log.error('the egress proxy has failed at something', { fault: message.message });
      },
      onExit() {
        own.watch.stop();
        for (const id of [...waiting.keys()]) settle(id);
        if (stopping) return;
        log.error('the egress proxy has ended and is started again');
        const steady = performance.now() - startedAt > restartDelayMs.steadyAfter;
        delayMs = steady ? restartDelayMs.first : Math.min(delayMs * 2, restartDelayMs.max);
        serving = { ...own, ready: false };
        setTimeout(() => !stopping && (serving = launch()), steady ? 0 : delayMs);
      },
    });
    const watch = createWatch({
      pid: child.pid,
      ask: answered => void send(own, id => ({ kind: 'ping', id }), answered),
      onStall(reason) {
        log.error('the egress proxy has stalled and is replaced', { reason });
        child.kill('SIGKILL');
      },
    });
    const own: Serving = { child, watch, ready: false };
    child.send({ kind: 'start', settings });
    return own;

    function beginToServe(): void {
      own.ready = true;
      for (const [slot, policy] of policies) child.send({ kind: 'set', id: 0, slot, policy });
      own.watch.start();
      clearTimeout(startTimer);
      started.resolve();
    }
  }

  function settle(id: number): void {
    const answered = waiting.get(id);
    waiting.delete(id);
    answered?.();
  }

  function send({ child }: Serving, message: (id: number) => ToProxy, answered: () => void): void {
    const id = ++lastId;
    waiting.set(id, answered);
    child.send(message(id));
  }

  /** Resolves when the process has done it, or is no more. One that is not there yet learns all when it is. */
  const tell = (message: (id: number) => ToProxy) =>
    new Promise<void>(resolve => {
      if (serving.ready) send(serving, message, resolve);
      else resolve();
    });

  return {
    async set(slot, policy) {
      policies.set(slot, policy);
      await started.promise;
      const { child } = serving;
      const timer = setTimeout(() => {
        log.error('the egress proxy does not take a policy and is replaced');
        child.kill('SIGKILL');
      }, setTimeoutMs);
      await tell(id => ({ kind: 'set', id, slot, policy }));
      clearTimeout(timer);
    },
    async remove(slot) {
      if (!policies.delete(slot)) return;
      const done = tell(id => ({ kind: 'remove', id, slot }));
      const late = Promise.withResolvers<void>();
      const timer = setTimeout(late.resolve, removeTimeoutMs);
      await Promise.race([done, late.promise]);
      clearTimeout(timer);
    },
    async stop() {
      stopping = true;
      clearTimeout(startTimer);
      const { child, watch } = serving;
      watch.stop();
      child.disconnect();
      const killer = setTimeout(() => child.kill('SIGKILL'), endTimeoutMs);
      await child.exited;
      clearTimeout(killer);
    },
  };
}

/** In every thread of the process, those too that are there before it gives up root: no program gives it more than it has. */
const withoutRights = ['setpriv', '--no-new-privs', '--inh-caps=-all', '--'];

/**
 * The process gets no environment: nothing of the platform's settings, and what it runs on does not depend on the caller's.
 * Messages are JSON: what it sends is read by root.
 */
function spawn(handlers: { onMessage(message: FromProxy): void; onExit(): void }): Child {
  const program = fileURLToPath(new URL('./proxy/main.ts', import.meta.url));
  const child = Bun.spawn([...withoutRights, process.execPath, '--no-env-file', '--config=/dev/null', program], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {},
    cwd: '/',
    serialization: 'json',
    ipc(message: unknown) {
      const understood = readFromProxy(message);
      if (understood) handlers.onMessage(understood);
    },
    onExit: handlers.onExit,
  });
  return {
    pid: child.pid,
    exited: child.exited,
    send: message => void (child.exitCode === null && child.send(message)),
    disconnect: () => void (child.exitCode === null && child.disconnect()),
    kill: signal => child.kill(signal),
  };
}
