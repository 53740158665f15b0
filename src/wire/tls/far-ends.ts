import { Backlog } from './backlog.ts';

/** The far end of a carried connection: what a local socket, which stands for it, can't tell and can't be told. */
type FarEnd = {
  /** It broke off, or the network did: the end of the local socket is none in order. */
  wasReset(): boolean;
  /** Breaks off, so that it sees a reset. */
  reset(): void;
};

/** The far ends of connections that other machines carry, by the descriptors of the sockets that stand for them. */
export class FarEnds {
  /** What waits on all of these connections. */
  readonly backlog: Backlog;
  readonly #byDescriptor = new Map<number, FarEnd>();

  constructor(backlog = new Backlog()) {
    this.backlog = backlog;
  }

  /** A later connection of the same descriptor takes the place of an earlier one, which is closed then. */
  add(descriptor: number, end: FarEnd): void {
    this.#byDescriptor.set(descriptor, end);
  }

  /** The far end of a socket that was just got; undefined for one that is connected directly. To be asked once. */
  take(descriptor: number): FarEnd | undefined {
    const end = this.#byDescriptor.get(descriptor);
    this.#byDescriptor.delete(descriptor);
    return end;
  }
}
