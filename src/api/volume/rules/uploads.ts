import { createFairSemaphore, type FairSemaphore } from '../../../base/concurrency/fair-semaphore.ts';
import { Uploads } from '../../build/rules/uploads.ts';

/** Files that teams together write to the volumes of one machine at a time: as many as its node takes (`writesMax`). */
const volumeUploadsMax = 128;
/** Files that one team writes there at a time. */
export const volumeUploadsPerTeamMax = 32;

/** Files of all teams, and of one, that may wait for a place there. */
const volumeUploadsWaitingMax = 1_024;
const volumeUploadsWaitingPerTeamMax = 256;

/**
 * Files that are put on a machine's disk at a time, whosever they are, and one each of so many teams beside of whom
 * none is: each holds a thread of the node for as long as the disk takes, of which there are as few as processors.
 */
const keptAtOnce = 4;
const spareKept = 2;

const bounds = {
  atOnceMax: volumeUploadsMax,
  perTeamMax: volumeUploadsPerTeamMax,
  waitingMax: volumeUploadsWaitingMax,
  waitingPerTeamMax: volumeUploadsWaitingPerTeamMax,
};

/** The uploads into volumes that are under way, by the machine that has the volume, and those that wait for a place. */
export class VolumeUploads {
  readonly #machines = new Map<string, Uploads>();
  readonly #keeping = new Map<string, FairSemaphore>();
  readonly #waitMs: number | undefined;

  constructor(waitMs?: number) {
    this.#waitMs = waitMs;
  }

  /** A place for an upload of a team to a machine, as `Uploads.begin` gives one. */
  begin(nodeId: string, teamId: string, signal: AbortSignal): Promise<Disposable> {
    const uploads = this.#machines.get(nodeId) ?? new Uploads(this.#waitMs, bounds);
    this.#machines.set(nodeId, uploads);
    return uploads.begin(teamId, signal);
  }

  /** Has a machine put the file of a team on its disk when it is the team's turn. */
  keep<T>(nodeId: string, teamId: string, work: () => Promise<T>): Promise<T> {
    const keeping = this.#keeping.get(nodeId) ?? createFairSemaphore(keptAtOnce, spareKept);
    this.#keeping.set(nodeId, keeping);
    return keeping.run(teamId, work);
  }
}
