/** Lets a bounded number of tasks run at a time, so that nobody waits for all that another owner has asked for. */
export type FairSemaphore = {
  /** Runs `task` when it is its owner's turn, and answers as it does. Undefined: of nobody's that is known. */
  run<T>(owner: string | undefined, task: () => Promise<T>): Promise<T>;
  /** Tasks that wait. */
  waiting(): number;
};

/** What runs of one owner, what waits, in the order in which it came, and the turn that was his last; 0: none yet. */
type Owner = { running: number; queue: (() => void)[]; lastTurn: number };

/**
 * A semaphore that lets `atOnce` tasks run at a time, whosever they are, and beside them one each of up to `spare`
 * owners of whom none runs: tasks that take minutes may hold all the other places. The next place is for whom the
 * fewest run, and among these for who was served least lately.
 */
export function createFairSemaphore(atOnce: number, spare: number): FairSemaphore {
  const owners = new Map<string, Owner>();
  let running = 0;
  let turns = 0;
  const mayBegin = (owner: Owner) => running < atOnce + (owner.running === 0 ? spare : 0);

  const beginNext = () => {
    const [next] = [...owners.values()]
      .filter(owner => owner.queue.length > 0 && mayBegin(owner))
      .sort((a, b) => a.running - b.running || a.lastTurn - b.lastTurn);
    if (!next) return;
    running++;
    next.running++;
    next.lastTurn = ++turns;
    next.queue.shift()?.();
  };
  const end = (name: string, owner: Owner) => {
    running--;
    owner.running--;
    if (owner.running === 0 && owner.queue.length === 0) owners.delete(name);
    beginNext();
  };

  return {
    async run(owner = '', task) {
      const own = owners.get(owner) ?? { running: 0, queue: [], lastTurn: 0 };
      owners.set(owner, own);
      const turn = new Promise<void>(resolve => own.queue.push(resolve));
      beginNext();
      await turn;
      try {
        return await task();
      } finally {
        end(owner, own);
      }
    },
    waiting: () => [...owners.values()].reduce((sum, { queue }) => sum + queue.length, 0),
  };
}
