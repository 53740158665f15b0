import type { ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { killGroup, runToEnd, start, textOf, waitFor } from '../../support/process.ts';

/** Sparse: only written blocks take space. */
const diskGib = 16;

/** From this exit status on, e2fsck has left errors. Source: e2fsck(8). */
const unrepaired = 4;

/** One write or flush that reached the disk. `end`: where it ends in the log; `bytes` is 0 for a flush. */
type DiskRecord = { end: number; bytes: number };

/**
 * A moment at which the power fails: everything in the log up to `flushed` is on the disk, and of the rest up to `end`,
 * some.
 */
export type Cut = { flushed: number; end: number };

/** How a disk fails: how many of a hundred writes and flushes are refused, and how long each takes. */
export type Faults = { refusedWrites: number; refusedFlushes: number; delayMs: number };

/** Makes disks on which a loss of power takes what was not flushed, in a folder of the test. */
export class LossyDisks {
  readonly #folder: string;
  readonly #program: string;
  readonly #image: string;
  readonly #log: string;
  /** Up to where in the log the image matches the disk. */
  #applied = 0;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#program = join(folder, 'lossy-disk');
    this.#image = join(folder, 'image');
    this.#log = join(folder, 'log');
  }

  /** Compiles the program and formats the disk. */
  static async make(folder: string): Promise<LossyDisks> {
    const disks = new LossyDisks(folder);
    await must('gcc', '-O2', '-o', disks.#program, join(import.meta.dirname, 'lossy-disk.c'));
    await must('truncate', '-s', `${diskGib}G`, disks.#image);
    await must('mkfs.ext4', '-q', '-m', '0', '-E', 'lazy_itable_init=1,lazy_journal_init=1', disks.#image);
    return disks;
  }

  /** The newly made disk, mounted at a folder; everything written to it is logged. */
  record(): Promise<MountedDisk> {
    return this.#serve([this.#log]);
  }

  /** How much has been logged. */
  loggedBytes(): number {
    return statSync(this.#log).size;
  }

  async records(): Promise<DiskRecord[]> {
    const lines = (await must(this.#program, 'list', this.#log)).trim().split('\n');
    return lines.map(line => {
      const [end = 0, bytes = 0] = line.split(' ').map(Number);
      return { end, bytes };
    });
  }

  /** The disk after a loss of power, mounted. Cuts must be requested in the order of their moments. */
  async after(cut: Cut, seed: number): Promise<MountedDisk> {
    if (cut.flushed > this.#applied) {
      await must(this.#program, 'apply', this.#image, this.#log, `${this.#applied}`, `${cut.flushed}`);
      this.#applied = cut.flushed;
    }
    return this.#serve(['/dev/null', this.#log, `${cut.flushed}`, `${cut.end}`, `${seed}`]);
  }

  /** The newly made disk, mounted; it can be told at any time how to fail. */
  async failing(): Promise<{ disk: MountedDisk; fail(how: Partial<Faults>): void }> {
    const file = join(this.#folder, 'faults');
    const fail = ({ refusedWrites = 0, refusedFlushes = 0, delayMs = 0 }: Partial<Faults>) => {
      // In place: the disk has this same file open.
      const fd = openSync(file, 'r+');
      writeSync(fd, new Uint32Array([refusedWrites, refusedFlushes, delayMs]));
      closeSync(fd);
    };
    writeFileSync(file, new Uint32Array(3));
    return { disk: await this.#serve(['/dev/null'], { LOSSY_DISK_FAULTS: file }), fail };
  }

  async #serve(args: string[], env: NodeJS.ProcessEnv = {}): Promise<MountedDisk> {
    const [file, point] = [join(this.#folder, 'disk'), join(this.#folder, 'mounted')];
    writeFileSync(file, '');
    mkdirSync(point, { recursive: true });
    const child = start([this.#program, 'serve', file, this.#image, join(this.#folder, 'overlay'), ...args], {
      env: { ...process.env, ...env },
    });
    const [output, complaints] = [textOf(child, 'stdout'), textOf(child, 'stderr')];
    await waitFor('the disk', () => {
      if (child.exitCode !== null) throw new Error(`the disk can't be served: ${complaints()}`);
      return output().includes('mounted');
    });
    const disk = new MountedDisk(child, file, point);
    await disk.mount();
    return disk;
  }
}

/** A disk in use. Disposing unmounts it. */
class MountedDisk implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #file: string;
  #loop = '';
  /** The mount point of its file system. */
  readonly point: string;

  constructor(child: ChildProcess, file: string, point: string) {
    this.#child = child;
    this.#file = file;
    this.point = point;
  }

  async mount(): Promise<void> {
    this.#loop = (await must('losetup', '--find', '--show', this.#file)).trim();
    await must('mount', this.#loop, this.point);
  }

  /** Whether the kernel has given up its file system after an error. */
  isReadOnly(): boolean {
    const line = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find(mount => mount.split(' ')[1] === this.point);
    const options = line?.split(' ')[3]?.split(',') ?? [];
    return options.some(option => ['ro', 'emergency_ro', 'shutdown'].includes(option));
  }

  /** As an operator does once the disk has recovered. Nobody may be using it. */
  async repair(): Promise<void> {
    await waitFor('the file system to be let go', () => succeeds('umount', this.point));
    const { exitCode, stdout } = await runToEnd(['e2fsck', '-f', '-p', this.#loop]);
    if (exitCode === null || exitCode >= unrepaired) throw new Error(`e2fsck: ${stdout}`);
    await must('mount', this.#loop, this.point);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Whatever was mounted in it, and the loop device below it, is released a moment after the request.
    await waitFor('the file system to be let go', () => succeeds('umount', this.point));
    await must('losetup', '--detach', this.#loop);
    await waitFor('the disk to be let go', () => succeeds('umount', this.#file));
    await waitFor('the end of the disk', () => this.#child.exitCode !== null).catch(error => {
      killGroup(this.#child, 'SIGKILL');
      throw error;
    });
  }
}

const succeeds = async (...argv: string[]) => (await runToEnd(argv)).exitCode === 0;

async function must(...argv: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runToEnd(argv);
  if (exitCode !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`);
  return stdout;
}
