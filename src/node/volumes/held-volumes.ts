import type { Slot } from '../layout.ts';
import type { VolumeUse } from './mounted-volumes.ts';

type Held = { volumeId: string; use: VolumeUse };

/** The volumes that sandboxes have, by their slots. */
export class HeldVolumes {
  readonly #held = new Map<string, Held[]>();
  readonly #use: (volumeId: string) => Promise<VolumeUse>;
  readonly #touch: (volumeId: string) => void;

  /** `use` mounts a volume; `touch` records that it is written to: a sandbox that has one may write at any time. */
  constructor(use: (volumeId: string) => Promise<VolumeUse>, touch: (volumeId: string) => void) {
    this.#use = use;
    this.#touch = touch;
  }

  /** Uses volumes until the slot is released, and answers their roots. */
  async hold({ name }: Slot, volumeIds: readonly string[]): Promise<string[]> {
    const uses: Held[] = [];
    this.#held.set(name, uses);
    for (const volumeId of volumeIds) {
      uses.push({ volumeId, use: await this.#use(volumeId) });
      this.#touch(volumeId);
    }
    return this.roots({ name });
  }

  release({ name }: Slot): void {
    for (const { volumeId, use } of this.#held.get(name) ?? []) {
      this.#touch(volumeId);
      use.release();
    }
    this.#held.delete(name);
  }

  /** The roots of the slot's volumes. */
  roots({ name }: Pick<Slot, 'name'>): string[] {
    return (this.#held.get(name) ?? []).map(({ use }) => use.root);
  }

  /** The volumes that any sandbox has. */
  all(): Set<string> {
    return new Set([...this.#held.values()].flat().map(({ volumeId }) => volumeId));
  }
}
