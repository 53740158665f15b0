/** How many creates are remembered per standby sandbox of the pool: enough to see what is often asked for. */
const rememberedPerStandby = 2;
/** The most that are remembered: so a large pool notices a change as soon as a smaller one. */
const rememberedMost = 32;
/** Another root becomes the usual one if it was asked for this many times as often: an exchange costs starts. */
const clearlyMore = 2;

type Root = readonly string[];

/** The root that the last creates asked for most often. A root is given by its layer digests, lowest first. */
type UsualRoot = {
  /** Remembers what a create asked for; null: something whose root can't be put in place ahead. */
  note(root: Root | null): void;
  /** Forgets the roots that `isMeant` accepts, as if nobody had asked for them. */
  forget(isMeant: (root: Root) => boolean): void;
  /**
   * The usual root, and how many standby sandboxes should have it: the same share of the pool as of the creates, minus
   * one for a create that asks for something else. Undefined: there is none.
   */
  wanted(): { root: Root; count: number } | undefined;
};

/** Starts without any requests. `poolSize`: how many standby sandboxes the pool has, which may change. */
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

/** How often each root is among them, by its name. If two are equally frequent, the one that came first is first. */
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

/** Joins the digests by spaces, because they contain none. */
const nameOf = (root: Root) => root.join(' ');
