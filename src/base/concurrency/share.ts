/** The holder of a share: a sandbox, an address, a team, all clients that are not on this machine, or everybody. */
type Holder = 'sandbox' | 'team' | 'address' | 'strangers' | 'everybody';

/**
 * How much of a common resource one holder has taken. It also counts for the holders that this one is part of, so that
 * no sandbox takes its team's whole share, and no team everybody's.
 */
export class Share {
  taken = 0;
  readonly holder: Holder;
  readonly max: number;
  readonly #whole: Share | null;

  constructor(holder: Holder, max: number, whole: Share | null) {
    this.holder = holder;
    this.max = max;
    this.#whole = whole;
  }

  /** The nearest share without room for one more; null where all have room. */
  get full(): Share | null {
    for (let share: Share | null = this; share !== null; share = share.#whole)
      if (share.taken >= share.max) return share;
    return null;
  }

  take(): void {
    for (let share: Share | null = this; share !== null; share = share.#whole) share.taken++;
  }

  give(): void {
    for (let share: Share | null = this; share !== null; share = share.#whole) share.taken--;
  }
}
