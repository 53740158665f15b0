import { createFairSemaphore, type FairSemaphore } from '../../../base/concurrency/fair-semaphore.ts';
import { Uploads } from '../../build/rules/uploads.ts';

/** Files that all teams write to the volumes of one machine at a time: as many as its node accepts (`writesMax`). */
const volumeUploadsMax = 128;
/** Files that one team writes there at a time. */
export const volumeUploadsPerTeamMax = 32;

/** Files of all teams that may wait for a place there. */
const volumeUploadsWaitingMax = 1_024;
const volumeUploadsWaitingPerTeamMax = 256;

/**
 * Files of any team that are put on a machine's disk at a time; in addition, this many teams without one may each have
 * one. Each holds a thread of the node as long as the disk takes, and the node has only as many as processors.
 */
const keptAtOnce = 4;
const spareKept = 2;

const bounds = {
  atOnceMax: volumeUploadsMax,
  perTeamMax: volumeUploadsPerTeamMax,
  waitingMax: volumeUploadsWaitingMax,
  waitingPerTeamMax: volumeUploadsWaitingPerTeamMax,
};

/** The uploads into volumes under way, by the volume's machine, and those that wait for a place. */
export class VolumeUploads {
  readonly #machines = new Map<string, Uploads>();
  readonly #keeping = new Map<string, FairSemaphore>();
  readonly #waitMs: number | undefined;

  constructor(waitMs?: number) {
    this.#waitMs = waitMs;
  }

  /** Takes a place for a team's upload to a machine, like `Uploads.begin`. */
  begin(nodeId: string, teamId: string, signal: AbortSignal): Promise<Disposable> {
    const uploads = this.#machines.get(nodeId) ?? new Uploads(this.#waitMs, bounds);
    this.#machines.set(nodeId, uploads);
    return uploads.begin(teamId, signal);
  }

  /** Makes a machine put a team's file on its disk when it is the team's turn. */
  keep<T>(nodeId: string, teamId: string, work: () => Promise<T>): Promise<T> {
    const keeping = this.#keeping.get(nodeId) ?? createFairSemaphore(keptAtOnce, spareKept);
    this.#keeping.set(nodeId, keeping);
    return keeping.run(teamId, work);
  }
}
