/** Each window divides the time anew. */
export const windowMs = 50;

/** Can be told to bring nothing more for the rest of a window. */
type Holdable = { hold(): void; letGo(): void };

/** The share of one sandbox in the process's time. */
export type Share = {
  /** Counts time that was spent for it; `cause` is its connection that brought the work, if one did. */
  charge(ms: number, cause?: Holdable): void;
};

/** Gives each sandbox a share of the process's time. */
export type Turns = { share(): Share };

/**
 * Divides the one event loop among sandboxes. A sandbox that is alone has all of it. As soon as others have work too,
 * one that has used its part of the window is held until the next window: what it has under way waits in the kernel,
 * and the others' work comes first.
 */
export function createTurns(schedule: (next: () => void) => void = next => void setTimeout(next, windowMs)): Turns {
  /** Sandboxes with work in this window, and how many there were in the one before. */
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
