import { newUuid } from './id.ts';

/** How far somebody has read a journal. Each journal counts from 0, and a new one has another epoch. */
export type JournalPlace = { epoch: string; number: number };

export type JournalPage<Item> = {
  items: Item[];
  /** To ask with for what follows. */
  next: JournalPlace;
  /** Whether items between the place asked with and the first of these are not kept any more, or were never this journal's. */
  isGap: boolean;
};

/**
 * A list of what happens, read in order by somebody who may go away and come back: to ask from a place says that everything
 * before it was taken care of.
 */
export type Journal<Item> = {
  note(item: Item): void;
  /**
   * What was noted from `after` on; null, or the place in another journal: all that is kept. Answers when there is something, at the
   * latest after `waitMs`, and with nothing when `signal` aborts.
   */
  read(after: JournalPlace | null, waitMs: number, signal?: AbortSignal): Promise<JournalPage<Item>>;
  /** The place behind everything that was noted. */
  end(): JournalPlace;
  /** Up to where a reader has said that everything was taken care of. */
  readUpTo(): number;
};

/** An empty journal. It keeps what nobody has asked beyond, the newest `itemsMax`. */
export function createJournal<Item>(itemsMax: number): Journal<Item> {
  const epoch = newUuid();
  let items: Item[] = [];
  let first = 0;
  let taken = 0;
  const waiting = new Set<() => void>();
  const end = () => first + items.length;

  function page(from: number, isGap: boolean): JournalPage<Item> {
    return { items: items.slice(from - first), next: { epoch, number: end() }, isGap };
  }

  return {
    note(item) {
      items.push(item);
      // In one go for many: to take one off a long list each time would cost its length.
      if (items.length > itemsMax * 2) drop(end() - itemsMax);
      for (const wake of [...waiting]) wake();
    },
    async read(after, waitMs, signal) {
      const isOurs = after?.epoch === epoch && after.number <= end();
      if (isOurs && after.number > taken) taken = after.number;
      if (isOurs && after.number > first) drop(after.number);
      const from = isOurs ? Math.max(after.number, first) : first;
      const isGap = after !== null && (!isOurs || after.number < first);
      if (end() === from && waitMs > 0 && !signal?.aborted) await change(waitMs, signal);
      // What was waited through may have dropped the beginning.
      return page(Math.max(from, first), isGap || from < first);
    },
    end: () => ({ epoch, number: end() }),
    readUpTo: () => taken,
  };

  function drop(upTo: number): void {
    items = items.slice(upTo - first);
    first = upTo;
  }

  function change(waitMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      const wake = () => {
        waiting.delete(wake);
        clearTimeout(timer);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, waitMs);
      waiting.add(wake);
      signal?.addEventListener('abort', wake, { once: true });
    });
  }
}
