import { dropPrivileges } from '../base/privileges.ts';
import { fromWire, toWire } from '../wire/error.ts';
import { beatMs, type FromPart, type ToPart, unpacked } from './messages.ts';

/** What a part can do beside its work. */
export type Control = {
  /** Gives up root for good. To be called when all is loaded and opened that takes more. */
  becomeUser(userId: number): void;
  /** Says what is being done that takes long. */
  phase(text: string): void;
  /** Asks the supervisor to do what this process may not. */
  ask(what: string, value: unknown): Promise<void>;
  /** Ends the process: it can't go on, and is started again. */
  fail(error: unknown): void;
};

export type RunningPart<Update> = {
  /** What the supervisor has to know. */
  about: unknown;
  stop(): Promise<void>;
  update?(update: Update): void;
};

/**
 * Runs a part of the platform in this process: starts it when the supervisor says with what, beats while its event loop turns, and
 * ends when it is told to or the supervisor is gone.
 */
export function runPart<Settings, Update = never>(start: (settings: Settings, control: Control) => Promise<RunningPart<Update>>): void {
  const asked = new Map<number, { resolve(): void; reject(error: Error): void }>();
  let lastAsk = 0;
  let part: Promise<RunningPart<Update>> | undefined;
  let isStopping = false;
  const send = (message: FromPart) => void process.send?.(message);
  const fail = (error: unknown) => {
    send({ kind: 'failed', error: toWire(error) });
    // The message is on its way when the turn is over.
    setTimeout(() => process.exit(1), 10);
  };
  const control: Control = {
    becomeUser: dropPrivileges,
    phase: text => send({ kind: 'phase', text }),
    ask(what, value) {
      const id = ++lastAsk;
      const answer = new Promise<void>((resolve, reject) => asked.set(id, { resolve, reject }));
      send({ kind: 'ask', id, what, value });
      return answer;
    },
    fail,
  };
  const stop = async () => {
    if (isStopping) return;
    isStopping = true;
    try {
      await (await part)?.stop();
      process.exit(0);
    } catch {
      process.exit(1);
    }
  };

  send({ kind: 'beat' });
  setInterval(() => send({ kind: 'beat' }), beatMs);
  process.on('message', (message: ToPart) => {
    if (message.kind === 'start') {
      part = start(unpacked(message.settings) as Settings, control);
      part.then(({ about }) => send({ kind: 'ready', about }), fail);
    } else if (message.kind === 'update') {
      void part?.then(running => running.update?.(unpacked(message.update) as Update)).catch(() => {});
    } else if (message.kind === 'answer') {
      const waiting = asked.get(message.id);
      asked.delete(message.id);
      if (message.error) waiting?.reject(fromWire(message.error));
      else waiting?.resolve();
    } else {
      void stop();
    }
  });
  process.on('disconnect', () => process.exit(1));
  // Terminals and service managers send them to everybody; the supervisor says in which order the parts end.
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM'] as const) process.on(signal, () => {});
}
