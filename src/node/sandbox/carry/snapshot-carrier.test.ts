import { afterEach, beforeEach, expect, test } from 'bun:test';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newUuid } from '../../../base/id.ts';
import type { Layout } from '../../layout.ts';
import type { Helper } from '../../native/helper.ts';
import { checksumsFile, verifyChecksums } from '../../snapshot/checksums.ts';
import { readManifest, writeManifest, type Manifest } from '../../snapshot/manifest.ts';
import { Reservations } from '../../space/reservations.ts';
import type { SnapshotFacts } from '../snapshot/snapshot-store.ts';
import { readAgents } from './agents.ts';
import { createSnapshotCarrier } from './snapshot-carrier.ts';

const helperBinary = join(import.meta.dir, '../../../../dist/helper');
let folder = '';
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'atoll-snapshot-carrier-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const [snapshotId, key] = [newUuid(), randomBytes(32).toString('base64url')];
const helper = {
  spawn(argv: string[]) {
    const { exitCode, stdout, stderr } = Bun.spawnSync(argv);
    return Promise.resolve({ status: exitCode, output: `${stdout}${stderr}` });
  },
} as unknown as Helper;

/** A machine whose current agent has this content, and optionally with an earlier one. */
async function machine(name: string, agent: string, earlier?: string) {
  const data = join(folder, name);
  const layout = { data, snapshots: join(data, 'snapshots'), agents: join(data, 'agents') } as Layout;
  const agentDir = join(layout.agents, `build-${name}`);
  mkdirSync(agentDir, { recursive: true });
  writeFileSync(join(agentDir, 'agent'), agent);
  if (earlier !== undefined) {
    mkdirSync(join(layout.agents, 'build-earlier'));
    writeFileSync(join(layout.agents, 'build-earlier', 'agent'), earlier);
  }
  const agents = await readAgents(layout.agents, agentDir, join(data, 'digests'));
  const memoryFacts = { agent: agents.present, kernel: 'its-kernel', criu: 'its-criu', cpuFlags: [] };
  const drivers = { default: { name: 'runsc' }, withCheckpoints: { name: 'crun' } as { name: string } | undefined };
  const reserved: number[] = [];
  const carrier = createSnapshotCarrier({
    layout,
    helper,
    helperBinary,
    drivers,
    agents,
    memoryFacts,
    space: {
      reserve(_: string, bytes: number) {
        reserved.push(bytes);
        return new Reservations().add(bytes);
      },
    },
  } as unknown as Parameters<typeof createSnapshotCarrier>[0]);
  const directory = join(layout.snapshots, snapshotId);
  return { ...carrier, directory, agentDir, layout, memoryFacts, drivers, reserved };
}
type Machine = Awaited<ReturnType<typeof machine>>;

/** Adds a snapshot that was taken with the agent in `agentDir`. */
function snapshot({ directory }: Machine, agentDir: string): void {
  mkdirSync(directory, { recursive: true });
  writeManifest(directory, {
    version: 1,
    memory: true,
    disk: true,
    createdAtMs: 5,
    mounts: [],
    madeBy: { machine: 'x86_64', kernel: 'older-kernel', criu: 'older-criu' },
    facts: { agentDir, bootId: 'b', controlToken: 't', layers: ['l1'] },
  } satisfies Manifest);
  writeFileSync(join(directory, 'pages-1.img'), 'memory');
  writeFileSync(join(directory, checksumsFile), 'of this machine alone');
}

/** Carries the snapshot; `as` is the ID under which it is received. */
async function carry(from: Machine, to: Machine, as = snapshotId): Promise<void> {
  const { sizeBytes, bytes } = await from.send(snapshotId, key);
  const arrival = await to.receive(as, key, sizeBytes);
  await arrival.take(bytes);
  await arrival.keep();
}

test('a snapshot that came is one of this machine, whole under its own checksums', async () => {
  const [from, to] = [await machine('from', 'agent'), await machine('to', 'agent')];
  snapshot(from, from.agentDir);
  await carry(from, to);
  expect(readFileSync(join(to.directory, 'pages-1.img'), 'utf8')).toBe('memory');
  expect(readManifest(to.directory)).toEqual({
    ...readManifest(from.directory),
    facts: { agentDir: to.agentDir, bootId: 'b', controlToken: 't', layers: ['l1'] },
  });
  for (const part of ['rest', 'memory'] as const) await verifyChecksums({ helper, helperBinary }, to.directory, part);
  expect(statSync(to.layout.snapshots).mode & 0o777).toBe(0o700);
  expect(readdirSync(join(to.layout.data, 'arriving-snapshots'))).toEqual([]);
  expect(to.reserved).toEqual([(await from.describe(snapshotId)).sizeBytes]);
});

test('it is described as what another machine has to have', async () => {
  const it = await machine('from', 'agent');
  snapshot(it, it.agentDir);
  expect(await it.describe(snapshotId)).toEqual({
    kept: 'memory',
    sizeBytes: (await it.send(snapshotId, key)).sizeBytes,
    layers: ['l1'],
    driver: 'crun',
    memory: { ...it.memoryFacts, kernel: 'older-kernel', criu: 'older-criu' } as never,
  });
  it.drivers.withCheckpoints = undefined;
  expect((await it.describe(snapshotId)).driver as string).toBe('runsc');
});

test('one of an earlier agent is only for machines that have that one, as theirs or as an earlier one', async () => {
  const from = await machine('from', 'new', 'old');
  const [same, both, other] = [
    await machine('same', 'old'),
    await machine('both', 'new', 'old'),
    await machine('other', 'new'),
  ];
  // The place of the agents at that time does not matter.
  snapshot(from, '/elsewhere/build-earlier');
  expect((await from.describe(snapshotId)).memory.agent).toBe(same.memoryFacts.agent);
  const agentOf = ({ directory }: Machine) => (readManifest(directory).facts as SnapshotFacts).agentDir;
  await carry(from, same);
  expect(agentOf(same)).toBe(same.agentDir);
  await carry(from, both);
  expect(agentOf(both)).toBe(join(both.layout.agents, 'build-earlier'));
  await expect(carry(from, other)).rejects.toMatchObject({ code: 'precondition' });
  expect(existsSync(other.directory)).toBe(false);
});

test('a snapshot that arrives under another ID is refused, and one that is here stays unchanged', async () => {
  const [from, to] = [await machine('from', 'agent'), await machine('to', 'agent')];
  snapshot(from, from.agentDir);
  await expect(carry(from, to, newUuid())).rejects.toMatchObject({ code: 'invalid' });
  expect(existsSync(to.layout.snapshots)).toBe(false);
  snapshot(to, to.agentDir);
  writeFileSync(join(to.directory, 'pages-1.img'), 'its own');
  await carry(from, to);
  expect(readFileSync(join(to.directory, 'pages-1.img'), 'utf8')).toBe('its own');
});

test('one that is not here can’t be sent', async () => {
  const it = await machine('from', 'agent');
  await expect(it.send(snapshotId, key)).rejects.toMatchObject({ code: 'not_found' });
  await expect(it.describe('no-snapshot')).rejects.toMatchObject({ code: 'invalid' });
});
