import { newUuid } from './id.ts';

/** How far a reader has read a journal. Each journal counts from 0, and a new one has another epoch. */
type JournalCursor = { epoch: string; number: number };

/** Items of a journal, in order, and the cursor for going on. */
type JournalPage<Item> = {
  items: Item[];
  /** The cursor for what follows. */
  next: JournalCursor;
  /**
   * Items between the given cursor and the first of these are lost: the journal dropped them, or the cursor is of
   * another journal.
   */
  isGap: boolean;
};

/**
 * A list of events for a reader who may go away and come back. Reading from a cursor says that everything before it is
 * handled.
 */
type Journal<Item> = {
  append(item: Item): void;
  /**
   * Items after `after`; all that are kept where `after` is null or a cursor of another journal. Answers as soon as
   * there are some, at the latest after `waitMs`, and with none when `signal` aborts.
   */
  read(after: JournalCursor | null, waitMs: number, signal?: AbortSignal): Promise<JournalPage<Item>>;
  /** The cursor after the last item. */
  end(): JournalCursor;
  /** The cursor up to which a reader has handled everything. */
  readUpTo(): number;
};

/** An empty journal. It keeps the items that no reader has handled, at most the newest `itemsMax`. */
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
    append(item) {
      items.push(item);
      // Drops many at once: taking one off a long list each time would cost time in its length.
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
      // The wait may have dropped the first items.
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
