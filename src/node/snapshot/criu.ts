import {
  chmodSync,
  copyFileSync,
  renameSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { failedWriteCode } from '../../base/disk-room.ts';
import { AtollError } from '../../base/error.ts';
import { readEndIfThere } from '../../base/small-file.ts';
import { lost } from '../../protocol/part-lost.ts';
import type { Helper } from '../native/helper.ts';
import { criuEnvironment, namespaceOwner } from '../native/namespace-owner.ts';
import type { HurryGracePeriods } from './grace-periods.ts';
import { firstErrors, lastPid } from './criu-words.ts';
import { listenForStages, type Stages } from './stages.ts';
import { advice } from '../../base/process/set-up.ts';

/** The CRIU that set-up found, as scripts/build-criu.mjs wrote it. `withoutTls`: see `lighten`. */
export type Criu = { argv: string[]; version: string; source: string; withoutTls?: boolean };

/** Longest run: it processes a sandbox's whole memory and a copy of its disk. */
const runTimeoutMs = 10 * 60_000;
/** CRIU warns of what a sandbox has, as often as the sandbox likes. It stops soon after an error. */
const logBytesMax = 1 << 20;
const learnTimeoutMs = 20_000;
const program = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Reads what set-up left in `directory`. Fails with `unavailable` and the reason if there is no CRIU. */
export function findCriu(directory: string): Criu {
  const file = join(directory, 'criu.json');
  if (!existsSync(file)) throw new AtollError('unavailable', `CRIU was not set up: ${advice.setUp}`);
  const { argv, version, source, reason } = JSON.parse(readFileSync(file, 'utf8')) as Criu & { reason?: string };
  if (!argv) throw new AtollError('unavailable', reason ?? 'there is no CRIU for this system');
  return { argv: argv.map(part => part.replace('{}', directory)), version, source };
}

/** CRIU without its library for encryption, if it starts like that: others than ours may be linked in another way. */
export async function lighten(
  { helper, helperBinary }: Pick<CriuHost, 'helper' | 'helperBinary'>,
  found: Criu,
): Promise<Criu> {
  const criu = { ...found, withoutTls: true };
  const argv = [...criuEnvironment(helperBinary, criu), ...criu.argv, '--version'];
  const { status } = await helper.spawn(argv, { timeoutMs: learnTimeoutMs });
  return status === 0 ? criu : found;
}

/** What running CRIU needs. */
export type CriuHost = {
  helper: Helper;
  /** The helper's executable, which contains the small programs that CRIU needs. */
  helperBinary: string;
  criu: Criu;
  /** For sockets and logs; short, because socket names must be. */
  runDir: string;
  hurry: HurryGracePeriods;
  /** For programs that CRIU starts, some as the user of a sandbox, who must be able to reach it. */
  programDir: string;
};

/** One run of CRIU. */
type CriuRun = {
  command: 'dump' | 'restore';
  /** Names the files of this run; no other run has the same name at the time. */
  name: string;
  imagesDir: string;
  /** Options as in CRIU's configuration file, one per line, e.g. `external mnt[/x]:/y`. */
  options: string[];
  /** Called when CRIU has its place among the helper's programs, and is about to begin. */
  onPlace?(): void;
  /** Called at CRIU's stages; a dump or restore whose stage fails is undone. */
  stages: Stages;
  /** Directories of the control groups for the processes that it restores. */
  groups?: string[];
  /** The team of the sandbox; absent: none is known. */
  teamId?: string | undefined;
  /** The host's IDs of the processes that it dumps. */
  processes?(): number[];
  /** How long it may compute; absent: as long as it may run. */
  cpuSeconds?: number;
  /** The host's user that has made the user namespace, or is to make it. Default root. */
  owner?: number;
  /** Memory comes from the images while the processes run (later-memory.ts). */
  memoryLater?: boolean;
};

/**
 * Runs CRIU to its end. Errors: `no_space`, or `unavailable` with what CRIU could not do; an error that a stage threw
 * is thrown.
 */
export async function runCriu(host: CriuHost, run: CriuRun): Promise<void> {
  const { helper, helperBinary, criu } = host;
  const pidBefore = lastPid();
  const logFile = join(host.runDir, `${run.name}.log`);
  const configFile = runFile(host, run.name);
  using _ = host.hurry();
  await using listener = listenForStages(join(host.runDir, `${run.name}.sock`), run.stages);
  const settings = [
    `action-script ${quote(helperBinary)}`,
    `log-file ${quote(logFile)}`,
    `images-dir ${quote(run.imagesDir)}`,
    `work-dir ${quote(run.imagesDir)}`,
    'verbosity=2',
    ...(run.memoryLater ? ['lazy-pages'] : []),
    ...run.options,
  ];
  writeFileSync(configFile, settings.map(line => `${line}\n`).join(''), { mode: 0o600 });
  // CRIU packs what is in a tmpfs with `tar --gzip`. Compressing memory that soon comes back is not worth the time.
  const owner = run.owner === undefined ? [] : namespaceOwner(helperBinary, run.owner);
  const last = run.stages['pre-resume'] ? ['ATOLL_CRIU_PRE_RESUME=1'] : [];
  const paths = [`PATH=${shimDir(host)}:${program}`, `ATOLL_CRIU_SOCKET=${listener.path}`];
  const alone = run.command === 'dump' ? ['ATOLL_CRIU_GOES_ON=1'] : [];
  const environment = [...paths, ...last, ...alone, ...owner, ...criuEnvironment(helperBinary, criu)];
  const groups = run.groups ? [`ATOLL_GROUPS=${run.groups.join(' ')}`] : [];
  const argv = [...criu.argv, run.command, '--no-default-config', '--config', configFile];
  const bounded = run.cpuSeconds === undefined ? argv : ['prlimit', `--cpu=${run.cpuSeconds}`, ...argv];
  const started = run.memoryLater ? ['ATOLL_MEMORY_LATER=1', helperBinary, 'with-faults', ...bounded] : bounded;
  try {
    const kind = run.command === 'dump' ? 'dump' : 'start';
    const { teamId, onPlace } = run;
    const options = { timeoutMs: runTimeoutMs, kind, teamId, onPlace } as const;
    const { status, output } = await helper.spawn([...environment, ...groups, ...started], options);
    // If CRIU was killed in a stage, the stage still runs: only after its end is it known what it has done to the
    // sandbox.
    await listener.settled();
    const wasKilled = status > signalStatus && status <= signalStatus + signalsMax;
    // This start or a later one sees from its file that a dump may have left something in the sandbox.
    if (run.command === 'restore' || !wasKilled) forgetRun(host, run.name);
    if (status === 0) return;
    if (wasKilled) throw killed(run, status - signalStatus);
    throw listener.failure() ?? failureOf(run, host, readEndIfThere(logFile, logBytesMax) ?? output, pidBefore);
  } finally {
    rmSync(logFile, { force: true });
  }
}

/** The file of a run of CRIU: it exists from the beginning of the run until the platform knows how it ended. */
export const runFile = ({ runDir }: Pick<CriuHost, 'runDir'>, name: string): string => join(runDir, `${name}.conf`);

/** Removes the file that shows that a run of CRIU has begun. */
export function forgetRun(host: Pick<CriuHost, 'runDir'>, name: string): void {
  rmSync(runFile(host, name), { force: true });
}

/** Something has ended CRIU, e.g. the kernel for lack of memory. That says nothing about the sandbox, or about room. */
function killed({ command, cpuSeconds }: CriuRun, signal: number): AtollError {
  // The sandbox has too much of something, and will have it the next time.
  if (cpuSeconds !== undefined && signal === constants.signals.SIGXCPU)
    return new AtollError(
      'precondition',
      'the memory of the sandbox can’t be kept: to write down what its processes have ' +
        `takes more than ${cpuSeconds} s of computing`,
      { detail: criuKilled },
    );
  const how = `was ended by signal ${signal} before the memory of the sandbox was`;
  return command === 'dump' ? lost('CRIU', `${how} kept`, criuKilled) : lost('CRIU', `${how} put back`);
}

/** The detail of errors about what CRIU could not do. */
export const checkpointFailed = 'checkpoint_failed';
/** The detail of errors about a dump whose CRIU was killed. */
export const criuKilled = 'criu_killed';
/** The detail of errors about a dump whose CRIU was killed and took the sandbox's first process with it. */
export const sandboxEnded = 'sandbox_ended';
/** The helper adds this to the signal that ended a program, as shells do. */
const signalStatus = 128;
/** Greater numbers are exit statuses of CRIU's own: it ends with 255 when it fails. */
const signalsMax = 64;

/**
 * Lets CRIU remember what the kernel can do. To be called once after the start of the helper; saves 20 ms in each run.
 */
export async function learnKernel({
  helper,
  helperBinary,
  criu,
  runDir,
}: Pick<CriuHost, 'helper' | 'helperBinary' | 'criu' | 'runDir'>): Promise<void> {
  const directory = join(runDir, 'criu');
  mkdirSync(directory, { recursive: true });
  const check = ['env', ...criuEnvironment(helperBinary, criu), ...criu.argv, 'check'];
  const { status, output } = await helper.spawn([helperBinary, 'learn-kernel', directory, ...check], {
    timeoutMs: learnTimeoutMs,
  });
  if (status !== 0) throw new AtollError('unavailable', `CRIU can't work with this kernel: ${output.trim()}`);
}

/** A value in CRIU's configuration file. */
export function quote(value: string): string {
  if (/["\\\n]/.test(value))
    throw new AtollError(
      'invalid',
      `the path ${JSON.stringify(value)} can't be checkpointed: it holds a quote, a backslash or a line end`,
    );
  return /\s|#/.test(value) ? `"${value}"` : value;
}

/**
 * A directory whose `gzip` compresses nothing: a copy of the helper under that name, because the user of a sandbox
 * can't reach the helper itself. If CRIU finds no copy it uses the host's gzip, which gives the same content.
 */
function shimDir({ helperBinary, programDir }: CriuHost): string {
  mkdirSync(programDir, { recursive: true, mode: 0o711 });
  const shim = join(programDir, 'gzip');
  if (!existsSync(shim)) {
    copyFileSync(helperBinary, `${shim}.new`);
    chmodSync(`${shim}.new`, 0o755);
    renameSync(`${shim}.new`, shim);
  }
  return programDir;
}

function failureOf({ imagesDir, ...run }: CriuRun, host: CriuHost, log: string, pidBefore: number): AtollError {
  const { command, options } = run;
  const processes = run.processes?.() ?? [];
  const what =
    command === 'dump' ? 'the memory of the sandbox can’t be kept' : 'the memory of the sandbox can’t be put back';
  const fields = { criu: log.slice(-8_000) };
  if (failedWriteCode(imagesDir) === 'no_space')
    return new AtollError('no_space', `${what}: the disk is full`, { fields });
  const places = [imagesDir, dirname(host.runDir), dirname(host.helperBinary), host.programDir];
  const facts = {
    places: [...places, ...options.flatMap(placeIn)],
    processes,
    lowestPid: Math.min(pidBefore, ...processes),
  };
  return new AtollError('unavailable', `${what}: ${firstErrors(log, facts) || 'CRIU failed without a word'}`, {
    fields,
    detail: checkpointFailed,
  });
}

/** The host's path in an option: `root /x`, `external mnt[key]:/x`. */
const placeIn = (option: string): string[] =>
  /^(?:root |external mnt\[[^\]]*\]:)"?(\/[^"]+)/.exec(option)?.slice(1) ?? [];
