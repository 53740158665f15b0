/** The time is shared anew in each window. */
export const windowMs = 50;

/** What can be told to bring nothing more for the rest of a window. */
type Holdable = { hold(): void; letGo(): void };

/** The share of one sandbox in the process's time. */
export type Share = {
  /** Counts work that was done for it, because of `cause` where something of its own brought it. */
  charge(ms: number, cause?: Holdable): void;
};

/** Gives each sandbox a share of the process's time. */
export type Turns = { share(): Share };

/**
 * Shares the one event loop out among sandboxes. Whoever is alone has all of it. As soon as others have work too, one
 * that has used its part of the window is held until the next: what it has on its way waits in the kernel, and the
 * others' comes first.
 */
export function createTurns(schedule: (next: () => void) => void = next => void setTimeout(next, windowMs)): Turns {
  /** Those with work in this window, and how many there were in the one before. */
  const active = new Map<Share, number>();
  const held = new Set<Holdable>();
  let activeBefore = 0;

  const next = () => {
    activeBefore = active.size;
    active.clear();
    const waiting = [...held];
    held.clear();
    for (const each of waiting) each.letGo();
    if (activeBefore > 0) schedule(next);
  };

  return {
    share() {
      const share: Share = {
        charge(ms, cause) {
          if (active.size === 0 && activeBefore === 0) schedule(next);
          const spent = (active.get(share) ?? 0) + ms;
          active.set(share, spent);
          const others = Math.max(active.size, activeBefore);
          if (others < 2 || spent <= windowMs / others || !cause || held.has(cause)) return;
          held.add(cause);
          cause.hold();
        },
      };
      return share;
    },
  };
}
