import { copyFileSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AtollError, messageOf } from '../../base/error.ts';
import { newSandboxId, newUuid } from '../../base/id.ts';
import { silentLog } from '../../base/telemetry/log.ts';
import { agentPort } from '../../protocol/agent.ts';
import type { CreateSandbox } from '../../protocol/node.ts';
import { claimInstallation } from '../installation.ts';
import { runByAgent } from '../agent-client/process.ts';
import type { Node } from '../start/options.ts';
import { startNode } from '../start/start.ts';
import { notInstalled } from '../../base/process/command.ts';
import { inScratch } from './filesystem.ts';
import { limited, missing, ok, placeUnusable, type Probe, type ProbeResult, sentence } from './probe.ts';
import { advice } from '../../base/process/set-up.ts';

const resources = { cpuCount: 1, memoryMiB: 256, diskMiB: 64 };
const commandTimeoutMs = 30_000;
const remedy =
  'This is what a start of the platform needs: mend what else `atoll doctor` finds, or report it with this line and ' +
  'the kernel’s log (`dmesg`).';

/** Remedies for failures that say themselves what is wrong, and that no other probe finds. */
const causes: readonly (readonly [says: RegExp, remedy: string])[] = [
  [
    /loop device/,
    'Loop devices are needed: `modprobe loop`; in a container, /dev/loop-control and /dev/loop* must be passed in.',
  ],
  [
    /\/proc\/sys\/[\w/.]{1,100}: Read-only file system/,
    '/proc/sys must be writable: mount it so; containers need `systempaths=unconfined` (docs/guides/container.md).',
  ],
  [
    /^EROFS: .*'\/run\//,
    '/run must be writable, best as a file system in memory: mount one there (`mount -t tmpfs tmpfs /run`).',
  ],
];

/** The remedy for the reason why no sandbox could be made. */
export const remedyOf = (failure: string): string => causes.find(([says]) => says.test(failure))?.[1] ?? remedy;

/** Where set-up has put what every sandbox needs. */
export type BuiltPrograms = { helperBinary: string; agentDir: string; builderDir: string };

/**
 * The deciding probe: makes a sandbox from two layers as the platform does, and runs a program in it. It belongs to an
 * installation of its own that is gone afterwards. Before set-up nothing can be tried, and the result says so.
 */
export function sandboxProbe(dataDir: string, built: BuiltPrograms): Probe {
  return {
    name: 'a sandbox',
    needed: true,
    remedy,
    look: () => inScratch(dataDir, scratch => lookAtSandbox(scratch, built)).catch(failed),
  };
}

async function lookAtSandbox(
  scratch: string,
  { helperBinary, agentDir, builderDir }: BuiltPrograms,
): Promise<ProbeResult> {
  if (![helperBinary, agentDir, builderDir].every(path => existsSync(path))) {
    return limited('not tried: what runs one is not there yet', sentence(advice.setUp));
  }
  const lost = Promise.withResolvers<never>();
  lost.promise.catch(() => {});
  const dataDir = join(scratch, 'data');
  const options = {
    nodeId: 'doctor',
    dataDir,
    helperBinary,
    agentDir,
    builderDir,
    nameservers: [],
    pool: { size: 0, resources },
    builds: { filesDir: join(scratch, 'files') },
    log: silentLog,
    onHelperLost: () => lost.reject(new AtollError('internal', 'the native helper has ended')),
  };
  const installation = claimInstallation(dataDir);
  const node = await startNode(options, installation).catch((error: unknown) => {
    // A failed start leaves its installation to the next start, and here there is none.
    installation.release();
    throw error;
  });
  const startedAt = performance.now();
  let failure: unknown;
  try {
    await Promise.race([lost.promise, runOne(node, await layersIn(scratch, node))]);
  } catch (error) {
    failure = error;
  }
  const took = Math.round(performance.now() - startedAt);
  // Everything that it held of the host is removed in any case; if something stays, that is a finding too.
  await node.down().catch((error: unknown) => (failure ??= error));
  return failure === undefined
    ? ok(`one was made, ran a program as root and as a user, and is gone again (${took} ms)`)
    : failed(failure);
}

function failed(error: unknown): ProbeResult {
  // Failures of this kind mean that nothing could be tried; they have their own remedy.
  const isUntried = error instanceof AtollError && [notInstalled, placeUnusable].includes(error.detail ?? '');
  if (isUntried || (error instanceof AtollError && error.code === 'no_space')) throw error;
  const [line = ''] = messageOf(error).split('\n');
  return missing(line, remedyOf(line));
}

/** Two layers with a shell: what a template has, and above it a file of a user. */
async function layersIn(scratch: string, node: Node): Promise<string[]> {
  const shell = Bun.which('busybox');
  if (shell === null) throw new AtollError('unavailable', 'busybox is not installed', { detail: notInstalled });
  const [lower, upper] = [join(scratch, 'lower'), join(scratch, 'upper')];
  for (const folder of ['bin', 'etc', 'tmp', 'home/user']) mkdirSync(join(lower, folder), { recursive: true });
  copyFileSync(shell, join(lower, 'bin/busybox'));
  symlinkSync('busybox', join(lower, 'bin/sh'));
  writeFileSync(join(lower, 'etc/passwd'), 'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n');
  writeFileSync(join(lower, 'etc/group'), 'root:x:0:\nuser:x:1000:\n');
  mkdirSync(join(upper, 'etc'), { recursive: true });
  writeFileSync(join(upper, 'etc/upper'), 'upper\n');
  return [await node.layers.pack(lower), await node.layers.pack(upper)];
}

async function runOne(node: Node, layers: string[]): Promise<void> {
  const request: CreateSandbox = {
    sandboxId: newSandboxId(),
    executionId: newUuid(),
    image: { templateId: 'doctor', buildId: 'doctor', layers, defaultUser: 'user', defaultWorkdir: '', buildEnv: {} },
    resources,
    network: { internetAccess: false },
    envVars: {},
    accessToken: null,
  };
  await node.protocol.create(request);
  // Checks that layers lie over each other, owners are shifted, and written files stay.
  await command(
    node,
    request,
    'root',
    '0 0 upper',
    'echo written > /etc/upper2 && echo $(busybox id -u) $(busybox stat -c %u /etc/passwd) $(busybox cat /etc/upper)',
  );
  await command(node, request, 'user', '1000 written', 'echo $(busybox id -u) $(busybox cat /etc/upper2)');
  await node.protocol.kill(request);
}

async function command(
  node: Node,
  { sandboxId }: CreateSandbox,
  user: string,
  expected: string,
  script: string,
): Promise<void> {
  let output = '';
  const process = {
    argv: ['/bin/sh', '-c', script] as [string, ...string[]],
    user,
    env: { PATH: '/bin' },
    cwd: '/',
    timeoutMs: commandTimeoutMs,
  };
  const { status } = await runByAgent(
    await node.protocol.dial(sandboxId, agentPort),
    process,
    (_, bytes) => void (output += Buffer.from(bytes).toString()),
  );
  if (output.trim() !== expected)
    throw new AtollError('internal', `a program in the sandbox said '${output.trim()}' (${status}), not '${expected}'`);
}
