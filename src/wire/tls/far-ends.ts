import { Backlog } from './backlog.ts';

/** The far end of a carried connection. The local socket stands for it, but can't report or send a reset. */
type FarEnd = {
  /** It broke off, or the network did: then the local socket's end is not an orderly one. */
  wasReset(): boolean;
  /** Breaks off, so that the far end sees a reset. */
  reset(): void;
};

/** The far ends of connections that other machines carry, by the descriptors of their local sockets. */
export class FarEnds {
  /** What waits on all of these connections. */
  readonly backlog: Backlog;
  readonly #byDescriptor = new Map<number, FarEnd>();

  constructor(backlog = new Backlog()) {
    this.backlog = backlog;
  }

  /** A later connection with the same descriptor replaces an earlier one, which must be closed by then. */
  add(descriptor: number, end: FarEnd): void {
    this.#byDescriptor.set(descriptor, end);
  }

  /** The far end of a socket that was just received; undefined for one that is connected directly. Ask only once. */
  take(descriptor: number): FarEnd | undefined {
    const end = this.#byDescriptor.get(descriptor);
    this.#byDescriptor.delete(descriptor);
    return end;
  }
}
