import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStore } from '../../../src/api/database/database.ts';
import type { Store } from '../../../src/api/database/database.ts';
import { defaultOptions, type SandboxRecord } from '../../../src/api/sandbox/record.ts';
import { createTeam } from '../../../src/api/team/rules/provision-team.ts';
import { insertTemplate } from '../../../src/api/template/store/write.ts';
import { newUuid } from '../../../src/base/id.ts';
import type { Database } from '../databases.ts';
import { newSqliteStore } from '../support/sqlite.ts';

/** When everything in these tests begins, microseconds since the epoch. */
export const startUs = 1_700_000_000_000_000;

/** A store with two teams, `mine` and `theirs`, and a template of each. */
type StoreScene = AsyncDisposable & {
  db: Store['db'];
  mine: { teamId: string; templateId: string };
  theirs: { teamId: string; templateId: string };
};

/** Opens a fresh store. */
export async function storeScene(database: Database): Promise<StoreScene> {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-store-'));
  const location = (await database.location()) ?? (await newSqliteStore(join(folder, 'store.sqlite')));
  const store = await openStore(location);
  const { db } = store;
  const team = async (slug: string) => {
    const { teamId } = await createTeam({ db, clock: () => startUs }, { name: slug, slug });
    const templateId = `template-of-${slug}`;
    await insertTemplate(db, { templateId, teamId, kind: 'template', public: false, nowUs: startUs });
    return { teamId, templateId };
  };
  const [mine, theirs] = [await team('mine'), await team('theirs')];
  return {
    db,
    mine,
    theirs,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Two calls at the same time, as two requests would make them. */
export const atOnce = <T>(call: (id: string) => Promise<T>): Promise<T[]> =>
  Promise.all([newUuid(), newUuid()].map(call));

/** Limits that nothing here reaches. */
export const manySandboxes = { concurrentSandboxes: 100, sandboxes: 100 };

/** A running sandbox of a team; `change` overrides parts of it. */
export function sandboxRecord(teamId: string, sandboxId: string, change: Partial<SandboxRecord> = {}): SandboxRecord {
  return {
    ...defaultOptions,
    sandboxId,
    executionId: `execution of ${sandboxId}`,
    teamId,
    nodeId: 'node-1',
    state: 'running',
    templateId: 'template-of-mine',
    buildId: 'b',
    alias: null,
    agentVersion: '1',
    cpuCount: 1,
    memoryMiB: 512,
    diskMiB: 512,
    createdAtUs: startUs,
    startedAtUs: startUs,
    endAtUs: startUs + 1_000,
    timeoutSeconds: 1,
    secure: true,
    volumeMounts: [],
    kept: null,
    agentUnresponsive: false,
    durability: null,
    nextExecutionId: null,
    nextNodeId: null,
    replicaId: null,
    ...change,
  };
}
