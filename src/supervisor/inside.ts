import { dropPrivileges } from '../base/process/privileges.ts';
import { fromWire, toWire } from '../wire/error.ts';
import { channelOver, partDescriptor } from './channel.ts';
import { beatMs, type FromPart, type ToPart, unpacked } from './messages.ts';

/** What a part can do towards its supervisor. */
type Control = {
  /** Gives up root for good. Call it when everything that needs root is loaded and open. */
  becomeUser(userId: number): void;
  /** Reports the long step that is under way. */
  phase(text: string): void;
  /** Asks the supervisor to do something that this process may not. */
  ask<Answer = void>(what: string, value: unknown): Promise<Answer>;
  /** Ends the process because it can't go on; the supervisor starts it again. */
  fail(error: unknown): void;
};

/** A part that has started. */
type RunningPart<Update> = {
  /** Facts to report to the supervisor. */
  about: unknown;
  stop(): Promise<void>;
  update?(update: Update): void;
};

/**
 * Runs a part of the platform in this process: starts it with the settings that the supervisor sends, sends beats while
 * its event loop turns, and ends when the supervisor says so or is gone.
 */
export function runPart<Settings, Update = never>(
  start: (settings: Settings, control: Control) => Promise<RunningPart<Update>>,
): void {
  const asked = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let lastAsk = 0;
  let part: Promise<RunningPart<Update>> | undefined;
  let isStopping = false;
  const channel = channelOver(partDescriptor);
  const send = (message: FromPart) => void channel.then(to => to.send(JSON.stringify(message)));
  const fail = (error: unknown) => {
    send({ kind: 'failed', error: toWire(error) });
    // The message is sent by the end of this turn of the loop.
    setTimeout(() => process.exit(1), 10);
  };
  const control: Control = {
    becomeUser: dropPrivileges,
    phase: text => send({ kind: 'phase', text }),
    ask<Answer>(what: string, value: unknown) {
      const id = ++lastAsk;
      const answer = new Promise<unknown>((resolve, reject) => asked.set(id, { resolve, reject })) as Promise<Answer>;
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
    } catch (error) {
      fail(error);
    }
  };

  send({ kind: 'beat' });
  setInterval(() => send({ kind: 'beat' }), beatMs);
  const take = (message: ToPart) => {
    if (message.kind === 'start') {
      part = start(unpacked(message.settings) as Settings, control);
      part.then(({ about }) => send({ kind: 'ready', about }), fail);
    } else if (message.kind === 'update') {
      void part?.then(running => running.update?.(unpacked(message.update) as Update)).catch(() => {});
    } else if (message.kind === 'answer') {
      const waiting = asked.get(message.id);
      asked.delete(message.id);
      if (message.error) waiting?.reject(fromWire(message.error));
      else waiting?.resolve(message.value);
    } else {
      void stop();
    }
  };
  void channel.then(
    from =>
      from.listen({
        // The supervisor is root: its messages are trusted.
        message: text => take(JSON.parse(text) as ToPart),
        closed: () => process.exit(1),
      }),
    () => process.exit(1),
  );
  // Terminals and service managers signal every process; the supervisor decides in which order the parts end.
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM'] as const) process.on(signal, () => {});
}
