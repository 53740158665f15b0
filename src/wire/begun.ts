import { AtollError, messageOf } from '../base/error.ts';
import type { Log } from '../base/telemetry/log.ts';

/** What the caller on a channel has begun and not yet ended. It is dropped when the channel closes. */
export class Begun {
  readonly #log: Log;
  readonly #drops = new Map<string, (id: string) => Promise<unknown>>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Records something by its ID. `isWanted`: false where nobody will learn the ID; then it is dropped at once. */
  add(id: string, drop: (id: string) => Promise<unknown>, isWanted: boolean): void {
    this.#drops.set(id, drop);
    if (!isWanted) this.#drop(id);
  }

  /** Forgets an ID that the caller ends; an unknown ID is no error. */
  end(id: unknown): void {
    if (typeof id === 'string') this.#drops.delete(id);
  }

  /** Drops everything, because the caller is gone. */
  dropAll(): void {
    for (const id of [...this.#drops.keys()]) this.#drop(id);
  }

  #drop(id: string): void {
    const drop = this.#drops.get(id);
    this.#drops.delete(id);
    drop?.(id).catch((error: unknown) => {
      // It has expired, or was ended on another channel.
      if (error instanceof AtollError && error.code === 'not_found') return;
      this.#log.warn('what a caller had begun could not be dropped', { id, error: messageOf(error) });
    });
  }
}
