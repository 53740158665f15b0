import { afterAll, beforeEach, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { newUuid } from '../../../base/id.ts';
import { createLog } from '../../../base/telemetry/log.ts';
import type { Machine } from '../../../protocol/cluster.ts';
import { insertBuild } from '../../build/store/write.ts';
import type { Machines } from '../../cluster/rules/machines.ts';
import { openStore } from '../../database/database.ts';
import { createTeam } from '../../team/rules/provision-team.ts';
import { insertTemplate } from '../../template/store/write.ts';
import type { ClusterStore } from '../rules/cluster-store.ts';
import { layerKeeping } from './layers.ts';

const { db, ...database } = await openStore({ kind: 'sqlite', path: ':memory:' });
afterAll(() => database[Symbol.asyncDispose]());
beforeEach(() => db.deleteFrom('builds').execute());
const clock = () => 1e15;
const { teamId } = await createTeam({ db, clock }, { name: 'T', slug: 't' });
const templateId = newUuid();
await insertTemplate(db, { templateId, teamId, kind: 'template', public: false, nowUs: 1 });

/** A ready build with one layer. */
async function built(layer: string, nowUs = 1): Promise<string> {
  const buildId = newUuid();
  const size = { cpuCount: 2, memoryMiB: 512, diskMiB: 700 };
  await insertBuild(db, { buildId, templateId, tags: ['default'], ...size, nowUs });
  const ready = { status: 'ready', layers_json: JSON.stringify([layer]) } as const;
  await db.updateTable('builds').set(ready).where('build_id', '=', buildId).execute();
  return buildId;
}

/** A cluster with a store; `why`: what its machines answer about layers that none of them has. */
function cluster() {
  const it = {
    isUsable: true,
    why: 'no machine has it',
    lacks: 'lost',
    logged: [] as string[],
    stored: [] as string[],
  };
  const store = {
    get isUsable() {
      return it.isUsable;
    },
    put: async ({ name }: { name: string }) => (it.stored.push(name), true),
  } as unknown as ClusterStore;
  const machine = { layers: { bytes: async () => 7 } } as unknown as Machine;
  const holder = async (digest: string) => {
    if (digest.startsWith(it.lacks)) throw new AtollError('unavailable', it.why);
    return machine;
  };
  const machines = { layers: { holder } } as unknown as Pick<Machines, 'layers'>;
  return {
    it,
    round: layerKeeping({ clock, db, log: createLog('warn', line => it.logged.push(line)), machines, store }),
  };
}

test('layers that no machine has don’t hold up others, even of more builds than fit into a round', async () => {
  for (let count = 0; count < 45; count++) await built(`lost ${count}`);
  await built('there', 2);
  const { it, round } = cluster();
  for (let rounds = 0; rounds < 3; rounds++) await round();
  expect(it.stored).toEqual(['there']);
  // It is no longer there at the next turn.
  for (let rounds = 0; rounds < 3; rounds++) await round();
  expect(it.stored).toEqual(['there']);
});

test('why a build’s layers are not stored is logged once, and again when that changes or comes back', async () => {
  const lost = await built('lost');
  const { it, round } = cluster();
  for (let rounds = 0; rounds < 3; rounds++) await round();
  expect(it.logged.map(line => JSON.parse(line) as object)).toMatchObject([
    { level: 'warn', buildId: lost, error: 'no machine has it' },
  ]);
  it.why = 'it is damaged';
  for (let rounds = 0; rounds < 3; rounds++) await round();
  expect(it.logged.length).toBe(2);
  // The machine is back.
  it.lacks = 'nothing';
  await round();
  expect([it.stored, it.logged.length]).toEqual([['lost'], 2]);
});

test('without a usable store nothing is asked, and later everything goes on', async () => {
  await built('lost');
  await built('there', 2);
  const { it, round } = cluster();
  it.isUsable = false;
  await round();
  expect([it.stored, it.logged]).toEqual([[], []]);
  it.isUsable = true;
  await round();
  expect([it.stored, it.logged.length]).toEqual([['there'], 1]);
});
