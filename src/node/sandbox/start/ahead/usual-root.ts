/** Creates that are remembered for each standby sandbox of the pool: enough to see what is asked for often. */
const rememberedPerStandby = 2;
/** And no more: a large pool sees as soon as a smaller one that something else is asked for. */
const rememberedMost = 32;
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

/** Nobody has asked for anything yet. `poolSize`: standby sandboxes of the pool, which may become more and fewer. */
export function createUsualRoot(poolSize: () => number): UsualRoot {
  const rememberedMax = () => Math.min(poolSize() * rememberedPerStandby, rememberedMost);
  let last: (Root | null)[] = [];
  let usual: Root | undefined;
  const choose = () => {
    const times = timesOfEach(last);
    const most = [...times.values()].toSorted((a, b) => b.times - a.times)[0];
    const present = usual === undefined ? 0 : (times.get(nameOf(usual))?.times ?? 0);
    if (present === 0 || (most && most.times >= clearlyMore * present)) usual = most?.root;
  };
  return {
    note(root) {
      last = [...last, root].slice(-rememberedMax());
      choose();
    },
    forget(isMeant) {
      last = last.filter(root => root === null || !isMeant(root));
      choose();
    },
    wanted() {
      if (usual === undefined) return undefined;
      const times = timesOfEach(last.slice(-rememberedMax())).get(nameOf(usual))?.times ?? 0;
      const count = Math.min(Math.floor((poolSize() * times) / rememberedMax()), poolSize() - 1);
      return { root: usual, count };
    },
  };
}

/** Whether two roots are made of the same layers. */
export function isSameRoot(a: Root | null, b: Root): boolean {
  return a !== null && a.length === b.length && a.every((digest, index) => digest === b[index]);
}

/** How often each root is among them, by its name. Where two are there as often, what came first is first. */
function timesOfEach(roots: readonly (Root | null)[]): Map<string, { root: Root; times: number }> {
  const each = new Map<string, { root: Root; times: number }>();
  for (const root of roots) {
    if (root === null) continue;
    const known = each.get(nameOf(root));
    if (known) known.times++;
    else each.set(nameOf(root), { root, times: 1 });
  }
  return each;
}

/** Digests have no spaces. */
const nameOf = (root: Root) => root.join(' ');
