import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { randomHex } from '../../base/crypto/secret.ts';
import { AtollError } from '../../base/error.ts';
import { withoutPlaces } from '../../base/process/without-places.ts';
import { ifThere, killIfThere } from '../../base/if-there.ts';
import { readIfThere } from '../../base/small-file.ts';
import type { CheckpointSource } from './checkpoint-source.ts';
import { type CriuHost, sandboxEnded } from './criu.ts';
import { damaged } from './checksums.ts';
import type { ChosenPages } from './later-pages.ts';

type LaterHost = Pick<CriuHost, 'helper' | 'helperBinary' | 'runDir'>;

const beginTimeoutMs = 20_000;
/** The process that brings memory gives up after ten minutes (native/snapshot-later.c). */
const waitTimeoutMs = 11 * 60_000;
/**
 * Highest exit status of the program that waits for it (1: the memory is lost); a higher one means that it was ended.
 */
const waitedStatus = 1;

/** The process that brings a sandbox's memory while it runs. It verifies each piece before the sandbox gets it. */
export type LaterMemory = {
  /** Verifies the memory that CRIU puts back at once. Fails with `unavailable` if that is damaged. */
  verifyNow(): Promise<void>;
  /** Ends it after a failed restore. Answers which image it has found damaged, if any. */
  giveUp(): Promise<string | undefined>;
};

type LaterRun = {
  slotName: string;
  /** The snapshot, and the directory from which CRIU reads its images. */
  directory: string;
  imagesDir: string;
  /** A control group with all of the sandbox's processes. */
  group: string;
  pages: ChosenPages;
};

/**
 * Starts a process that brings memory from the images of a directory, to the CRIU that next restores from there. It
 * goes on when the platform ends, and ends the sandbox if it can't go on. Errors: `unavailable`.
 */
export async function bringLater({ helper, helperBinary, runDir }: LaterHost, run: LaterRun): Promise<LaterMemory> {
  mkdirSync(plansIn(runDir), { recursive: true });
  const file = join(plansIn(runDir), `${prefixOf(run.slotName)}${randomHex(4)}`);
  writeFileSync(file, planOf(run), { mode: 0o600 });
  const { status, output } = await helper.spawn([helperBinary, 'bring-later', file], {
    timeoutMs: beginTimeoutMs,
    kind: 'start',
  });
  if (status !== 0) {
    rmSync(file, { force: true });
    throw new AtollError('unavailable', `the memory of the sandbox can’t be brought: ${withoutPlaces(output)}`);
  }
  return {
    async verifyNow() {
      const argv = [helperBinary, 'verify-now', file];
      const { status, output } = await helper.spawn(argv, { timeoutMs: waitTimeoutMs, kind: 'start' });
      if (status !== 0) throw damaged(output);
    },
    async giveUp() {
      const argv = [helperBinary, 'end-later', file, run.imagesDir];
      await helper.spawn(argv, { timeoutMs: waitTimeoutMs, kind: 'release' });
      const complaint = readIfThere(`${file}${complaintsEnd}`)?.trim();
      for (const left of [file, `${file}${complaintsEnd}`]) rmSync(left, { force: true });
      return complaint?.startsWith('pages-') ? complaint : undefined;
    },
  };
}

/**
 * The plan, in the form that native/snapshot-later.c reads. The last process is served first: the agent, which is
 * among the oldest.
 */
function planOf({ directory, imagesDir, group, pages: { later, now } }: LaterRun): string {
  const processes = later
    .toSorted((a, b) => b.pid - a.pid)
    .flatMap(({ pid, file, areas, pieces }) => [
      `process ${pid} ${file}`,
      ...areas.map(({ from, to }) => `area ${from} ${to}`),
      ...pieces.map(({ from, to, offset }) => `piece ${from} ${to} ${offset}`),
    ]);
  const places = [`group ${group}`, `snapshot ${directory}`, `directory ${imagesDir}`];
  return [...places, ...processes, ...now.map(({ file, from, to }) => `now ${file} ${from} ${to}`), ''].join('\n');
}

/**
 * Waits until all memory of a sandbox is there. If it can't come, the sandbox is ended. Errors: `unavailable`, with
 * the detail `sandboxEnded` in that case.
 */
export async function memoryIsThere(
  host: LaterHost,
  { slotName, teamId, group }: Pick<CheckpointSource, 'slotName' | 'teamId' | 'group'>,
): Promise<void> {
  const reason = await whyMemoryLost(host, slotName, teamId);
  if (reason === undefined) return;
  for (const pid of group.processes()) killIfThere(pid);
  const message = `the memory of the sandbox did not all come back: ${reason}`;
  throw new AtollError('unavailable', message, { detail: sandboxEnded });
}

/**
 * Why memory for a slot is lost, once that is certain: the process that brought it was killed, or found it damaged.
 * Undefined: all is there, or the sandbox ended before. Errors: `unavailable` if that can't be found out.
 */
export async function whyMemoryLost(
  { helper, helperBinary, runDir }: LaterHost,
  slotName: string,
  teamId?: string,
): Promise<string | undefined> {
  for (const file of plansOf(runDir, slotName)) {
    const argv = [helperBinary, 'wait-later', file];
    const { status, output } = await helper.spawn(argv, { timeoutMs: waitTimeoutMs, kind: 'dump', teamId });
    if (status > waitedStatus)
      throw new AtollError('unavailable', 'it could not be found out whether the memory of the sandbox has all come');
    if (status !== 0) return withoutPlaces(output);
  }
  // Its complaints are removed when all memory is there.
  const complaints = complaintsOf(runDir, slotName);
  if (complaints.length === 0) return undefined;
  return complaints.map(file => readIfThere(file)?.trim() ?? '').find(text => text !== '') ?? 'it was killed';
}

/** Removes the plan of a slot whose sandbox has ended. Answers why that failed, if it did. */
export function forgetLater(runDir: string, slotName: string): string | undefined {
  const plans = plansOf(runDir, slotName);
  const complaints = complaintsOf(runDir, slotName);
  const reason = complaints.map(file => readIfThere(file) ?? '').find(text => text !== '');
  for (const file of [...plans, ...complaints]) rmSync(file, { force: true });
  return reason;
}

/** Removes the plans of slots that nobody uses. */
export function forgetLaterBut(runDir: string, slotNames: Set<string>): void {
  for (const name of namesIn(plansIn(runDir)))
    if (!slotNames.has(name.slice(0, name.indexOf('-')))) rmSync(join(plansIn(runDir), name), { force: true });
}

const plansIn = (runDir: string) => join(runDir, 'later');

const plansOf = (runDir: string, slotName: string) =>
  namesIn(plansIn(runDir))
    .filter(name => name.startsWith(prefixOf(slotName)) && !name.endsWith(complaintsEnd))
    .map(name => join(plansIn(runDir), name));

const complaintsOf = (runDir: string, slotName: string) =>
  namesIn(plansIn(runDir))
    .filter(name => name.startsWith(prefixOf(slotName)) && name.endsWith(complaintsEnd))
    .map(name => join(plansIn(runDir), name));

/** The end of the names of files with the complaints of a process that brings memory. */
const complaintsEnd = '.log';

const namesIn = (directory: string) => ifThere(() => readdirSync(directory), []);

const prefixOf = (slotName: string) => `${slotName}-`;
