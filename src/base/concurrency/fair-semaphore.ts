/**
 * Lets a bounded number of tasks run at a time, so that nobody waits for everything that another owner has asked for.
 */
export type FairSemaphore = {
  /** Runs `task` when it is its owner's turn, and answers as it does. Undefined: no known owner. */
  run<T>(owner: string | undefined, task: () => Promise<T>): Promise<T>;
  /** The number of waiting tasks. */
  waiting(): number;
};

/** One owner's running tasks, its waiting tasks in the order they came, and its last turn; 0: none yet. */
type Owner = { running: number; queue: (() => void)[]; lastTurn: number };

/**
 * A semaphore that lets `atOnce` tasks of any owner run at a time. In addition, up to `spare` owners without a running
 * task get one each, because tasks of minutes may hold all the other places. The next place goes to the owner with the
 * fewest running tasks, and among these to the one served longest ago.
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
