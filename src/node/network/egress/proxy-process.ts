import { fileURLToPath } from 'node:url';
import { AtollError } from '../../../base/error.ts';
import type { Log } from '../../../base/log.ts';
import type { EgressPolicy } from '../../../protocol/network.ts';
import type { Denial, FromProxy, ProxySettings, ToProxy } from './messages.ts';

const startTimeoutMs = 20_000;
const answerTimeoutMs = 10_000;
/** How long to wait before a proxy that has ended is started again; doubled each time until one has run for a while. */
const restartDelayMs = { first: 100, max: 5_000, steadyAfter: 30_000 } as const;

/** The egress proxy, in a process of its own that is started again when it ends. */
export type Proxy = {
  /** Tells it the policy of a sandbox. When it resolves, the policy holds and connections that it denies are cut. */
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

type Child = { send(message: ToProxy): void; disconnect(): void; kill(signal: NodeJS.Signals): void; exited: Promise<number> };

/** Starts the proxy in the background; the first calls wait for it. */
export function startProxy({ settings, log, onDenied }: ProxyOptions): Proxy {
  const policies = new Map<number, EgressPolicy>();
  const waiting = new Map<number, { resolve(): void; reject(error: Error): void }>();
  let lastId = 0;
  let stopping = false;
  let delayMs: number = restartDelayMs.first;
  let child: Child | undefined;
  let ready = launch();

  function launch(): Promise<void> {
    const started = Promise.withResolvers<void>();
    const startedAt = performance.now();
    const timer = setTimeout(() => started.reject(new AtollError('internal', 'the egress proxy did not start in time')), startTimeoutMs);
    const current = (child = spawn({
      onMessage(message) {
        if (message.kind === 'ready') started.resolve();
        else if (message.kind === 'failed') started.reject(new AtollError('internal', `the egress proxy did not start: ${message.message}`));
        else if (message.kind === 'denied') onDenied(message.slot, message.count, message.sample);
        else settle(message.id);
      },
      onExit() {
        clearTimeout(timer);
        started.reject(new AtollError('internal', 'the egress proxy has ended'));
        for (const id of [...waiting.keys()]) settle(id, new AtollError('internal', 'the egress proxy has ended'));
        if (stopping || child !== current) return;
        log.error('the egress proxy has ended and is started again');
        ready = (performance.now() - startedAt > restartDelayMs.steadyAfter ? Promise.resolve() : Bun.sleep(delayMs)).then(() => {
          delayMs = Math.min(delayMs * 2, restartDelayMs.max);
          return stopping ? undefined : launch();
        });
        ready.catch(() => {});
      },
    }));
    current.send({ kind: 'start', settings });
    return started.promise.then(() => {
      clearTimeout(timer);
      for (const [slot, policy] of policies) current.send({ kind: 'set', id: 0, slot, policy });
    });
  }

  function settle(id: number, error?: Error): void {
    const call = waiting.get(id);
    waiting.delete(id);
    if (error) call?.reject(error);
    else call?.resolve();
  }

  const call = async (message: (id: number) => ToProxy): Promise<void> => {
    await ready;
    const id = ++lastId;
    const answer = new Promise<void>((resolve, reject) => waiting.set(id, { resolve, reject }));
    const timer = setTimeout(() => settle(id, new AtollError('internal', 'the egress proxy does not answer')), answerTimeoutMs);
    child?.send(message(id));
    await answer.finally(() => clearTimeout(timer));
  };

  ready.catch(() => {}); // whoever calls hears it
  return {
    async set(slot, policy) {
      await call(id => ({ kind: 'set', id, slot, policy }));
      policies.set(slot, policy);
    },
    async remove(slot) {
      // A proxy that has ended knows of no sandbox that is not in the list.
      if (policies.delete(slot)) await call(id => ({ kind: 'remove', id, slot })).catch(() => {});
    },
    async stop() {
      stopping = true;
      child?.disconnect();
      const killer = setTimeout(() => child?.kill('SIGKILL'), answerTimeoutMs);
      await child?.exited;
      clearTimeout(killer);
    },
  };
}

/** The process gets no environment: nothing of the platform's settings, and what it runs on does not depend on the caller's. */
function spawn(handlers: { onMessage(message: FromProxy): void; onExit(): void }): Child {
  const program = fileURLToPath(new URL('./proxy/main.ts', import.meta.url));
  return Bun.spawn([process.execPath, '--no-env-file', '--config=/dev/null', program], {
    stdio: ['ignore', 'inherit', 'inherit'],
    env: {},
    cwd: '/',
    ipc: handlers.onMessage,
    onExit: handlers.onExit,
  });
}
