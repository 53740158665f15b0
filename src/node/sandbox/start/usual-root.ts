/** Creates that are remembered for each standby sandbox of the pool: enough to see what is asked for often. */
const rememberedPerStandby = 2;
/** Another root becomes the usual one when it was asked for so many times as often: an exchange costs starts. */
const clearlyMore = 2;

type Root = readonly string[];

/** Which root the last creates asked for most often. A root is named by its layer digests, lowest first. */
type UsualRoot = {
  /** Remembers what a create asked for; null: something that no root can be put in place for ahead. */
  note(root: Root | null): void;
  /** Forgets the roots of which this is true, as if nobody had asked for them. */
  forget(isMeant: (root: Root) => boolean): void;
  /**
   * The usual root, and how many standby sandboxes should have it: as many of the pool as it had of the creates, but
   * one, which is for whoever asks for something else. Undefined: none.
   */
  wanted(): { root: Root; count: number } | undefined;
};

/** Nobody has asked for anything yet. `poolSize`: standby sandboxes of the pool. */
export function createUsualRoot(poolSize: number): UsualRoot {
  const rememberedMax = poolSize * rememberedPerStandby;
  let last: (Root | null)[] = [];
  let usual: Root | undefined;
  const timesOf = (root: Root) => last.filter(one => isSameRoot(one, root)).length;
  const choose = () => {
    const counted = last.flatMap(root => (root === null ? [] : [{ root, times: timesOf(root) }]));
    const [most] = counted.toSorted((a, b) => b.times - a.times);
    const present = usual === undefined ? 0 : timesOf(usual);
    if (present === 0 || (most && most.times >= clearlyMore * present)) usual = most?.root;
  };
  return {
    note(root) {
      last = [...last, root].slice(-rememberedMax);
      choose();
    },
    forget(isMeant) {
      last = last.filter(root => root === null || !isMeant(root));
      choose();
    },
    wanted() {
      if (usual === undefined) return undefined;
      const count = Math.min(Math.floor((poolSize * timesOf(usual)) / rememberedMax), poolSize - 1);
      return { root: usual, count };
    },
  };
}

/** Whether two roots are made of the same layers. */
export function isSameRoot(a: Root | null, b: Root): boolean {
  return a !== null && a.length === b.length && a.every((digest, index) => digest === b[index]);
}
