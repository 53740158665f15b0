/** What waits at one place of a connection. */
export class WaitingAccount {
  /** Has the connection closed, because too much waits in all. */
  readonly end: () => void;
  bytes = 0;
  readonly #all: WaitingBytes;
  #group: string;
  #closed = false;

  constructor(all: WaitingBytes, group: string, end: () => void) {
    this.#all = all;
    this.#group = group;
    this.end = end;
  }

  get group(): string {
    return this.#group;
  }

  /** From now on somebody else is to blame. */
  moveTo(group: string): void {
    if (group === this.#group) return;
    const { bytes } = this;
    this.set(0);
    this.#group = group;
    this.set(bytes);
  }

  /** So many bytes wait now. */
  set(bytes: number): void {
    if (bytes !== this.bytes && !this.#closed) this.#all.change(this, bytes);
  }

  /** The connection is gone, or as good as gone. */
  close(): void {
    this.set(0);
    this.#closed = true;
  }
}

/** What waits for one team's sandboxes and their clients, or for one address that asks for none. */
type Group = { bytes: number; readonly accounts: Set<WaitingAccount> };

/**
 * The bytes that the edge has read and that nobody takes. Every connection may have a part of a megabyte, so that fast
 * ones are fast; all of them together would be more memory than the edge may have. Where too much waits, the connection
 * ends that has waited longest of the group with the most: a group with less than an equal part loses none.
 */
export class WaitingBytes {
  readonly #max: number;
  readonly #groups = new Map<string, Group>();
  #total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** `end` closes the connection; it is called when the current event is over. */
  account(group: string, end: () => void): WaitingAccount {
    return new WaitingAccount(this, group, end);
  }

  /** Called by accounts. */
  change(account: WaitingAccount, bytes: number): void {
    this.#count(account, bytes);
    while (this.#total > this.#max) {
      const [longest] = this.#largest().accounts;
      if (longest === undefined) return;
      longest.close();
      // The connection may be in the middle of handling what has come.
      queueMicrotask(longest.end);
    }
  }

  #count(account: WaitingAccount, bytes: number): void {
    const group = this.#groups.get(account.group) ?? { bytes: 0, accounts: new Set() };
    this.#groups.set(account.group, group);
    group.bytes += bytes - account.bytes;
    this.#total += bytes - account.bytes;
    account.bytes = bytes;
    // A set keeps the order in which they began to wait.
    if (bytes > 0) group.accounts.add(account);
    else group.accounts.delete(account);
    if (group.accounts.size === 0) this.#groups.delete(account.group);
  }

  #largest(): Group {
    let largest: Group = { bytes: 0, accounts: new Set() };
    for (const group of this.#groups.values()) if (group.bytes > largest.bytes) largest = group;
    return largest;
  }
}
