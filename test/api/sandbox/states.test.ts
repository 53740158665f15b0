import { expect, test } from 'bun:test';
import { defaultOptions } from '../../../src/api/sandbox/record.ts';
import { openStore } from '../../../src/api/database/database.ts';
import type { Db } from '../../../src/api/database/db.ts';
import { createTeam } from '../../../src/api/team/rules/provision-team.ts';
import { insertSandbox } from '../../../src/api/sandbox/store/create.ts';
import { beginPause, finishPause, returnToRunning } from '../../../src/api/sandbox/store/pause.ts';
import { beginMove, finishMove, recordNextRun } from '../../../src/api/sandbox/store/move.ts';
import { findSandboxOfAnyTeam } from '../../../src/api/sandbox/store/read.ts';
import { beginResume, cancelResume, finishResume } from '../../../src/api/sandbox/store/resume.ts';
import {
  markSandboxForKill,
  deleteLost,
  deleteSandbox,
  expireSandbox,
  moveSandbox,
  publishSandbox,
  setSandboxEnd,
} from '../../../src/api/sandbox/store/state.ts';
import type { SandboxRecord } from '../../../src/api/sandbox/record.ts';
import { newSandboxId, newUuid } from '../../../src/base/id.ts';
import { type SandboxState, mayBecome, sandboxStates } from '../../../src/protocol/state.ts';
import { onEachDatabase } from '../databases.ts';

const nowUs = 1_000_000_000;
const nextExecutionId = newUuid();
const replicaId = newUuid();

/** The result of a change for each state that it may leave; it leaves every other state unchanged, and says so. */
type Change = {
  run(db: Db, sandbox: SandboxRecord): Promise<unknown>;
  becomes: Partial<Record<SandboxState, SandboxState | 'gone'>>;
};

const changes: Record<string, Change> = {
  publish: {
    run: (db, sandbox) => publishSandbox(db, sandbox, { startedAtUs: nowUs, endAtUs: nowUs }),
    becomes: { starting: 'running' },
  },
  'begin a pause': {
    run: (db, sandbox) => beginPause(db, sandbox, 'memory', replicaId),
    becomes: { running: 'pausing' },
  },
  // Its node says that it is paused, and knows better.
  'finish a pause': {
    run: (db, sandbox) => finishPause(db, sandbox, { kept: 'memory' }, nowUs),
    becomes: { pausing: 'paused', running: 'paused', snapshotting: 'paused', moving: 'paused' },
  },
  'return to running': {
    run: returnToRunning,
    becomes: { pausing: 'running', snapshotting: 'running', moving: 'running' },
  },
  'begin a resume': {
    run: (db, sandbox) => beginResume(db, sandbox, { nextExecutionId, replicaId, nowUs }, 100),
    becomes: { paused: 'resuming' },
  },
  'finish a resume': {
    run: (db, sandbox) => finishResume(db, { ...sandbox, nextExecutionId }, { startedAtUs: nowUs, endAtUs: nowUs }),
    becomes: { resuming: 'running' },
  },
  'cancel a resume': {
    run: (db, sandbox) => cancelResume(db, { ...sandbox, nextExecutionId }),
    becomes: { resuming: 'paused' },
  },
  'begin a snapshot': {
    run: (db, sandbox) => moveSandbox(db, sandbox, ['running'], 'snapshotting', replicaId),
    becomes: { running: 'snapshotting' },
  },
  expire: { run: (db, sandbox) => expireSandbox(db, sandbox, nowUs, replicaId), becomes: { running: 'killing' } },
  'mark for a kill': {
    run: (db, sandbox) => markSandboxForKill(db, sandbox, ['running', 'paused'], nowUs, replicaId),
    becomes: { running: 'killing', paused: 'killing' },
  },
  'set the end': {
    run: (db, sandbox) => setSandboxEnd(db, sandbox, { endAtUs: nowUs + 1, onlyLater: false, nowUs }),
    becomes: { running: 'running', moving: 'moving' },
  },
  'begin a move': {
    run: (db, sandbox) => beginMove(db, sandbox, { nextNodeId: 'next-node', replicaId }, async () => true),
    becomes: { running: 'moving' },
  },
  'record who is asked in a move': {
    run: (db, sandbox) =>
      recordNextRun(db, sandbox, { nextNodeId: 'next-node', nextExecutionId, durability: 'cluster', replicaId }),
    becomes: { moving: 'moving' },
  },
  'finish a move': {
    run: (db, sandbox) => finishMove(db, sandbox, nextExecutionId, nowUs),
    becomes: { moving: 'running' },
  },
  delete: {
    run: async (db, sandbox) =>
      (await deleteSandbox(db, sandbox, ['starting', 'killing'], { reason: 'failed', atUs: nowUs })) || null,
    becomes: { starting: 'gone', killing: 'gone' },
  },
  'delete what its node has lost': {
    run: async (db, sandbox) => (await deleteLost(db, sandbox, nowUs)) || null,
    becomes: Object.fromEntries(sandboxStates.map(state => [state, 'gone' as const])),
  },
};

/**
 * The row may have passed to another worker while this one was away: these changes insist on the row as it was read.
 */
const fenced = ['finish a pause', 'return to running', 'delete what its node has lost'];

/** Transitions that the state machine of clients' operations lacks: only a node can report that they happened. */
const byNodeAlone = ['running -> paused', 'snapshotting -> paused'];

onEachDatabase(database => {
  test('each change of a state leaves the states that it may, and no other; a late one hits no successor', async () => {
    await using store = await openStore((await database.location()) ?? { kind: 'sqlite', path: ':memory:' });
    const { db } = store;
    const team = await createTeam({ db, clock: () => nowUs }, { name: 'T', slug: 't' });
    const put = async (state: SandboxState) => {
      const sandbox: SandboxRecord = {
        ...defaultOptions,
        sandboxId: newSandboxId(),
        executionId: newUuid(),
        teamId: team.teamId,
        nodeId: 'another-node',
        state,
        templateId: 't',
        buildId: 'b',
        alias: null,
        agentVersion: '1',
        cpuCount: 1,
        memoryMiB: 1,
        diskMiB: 1,
        createdAtUs: nowUs,
        startedAtUs: nowUs,
        endAtUs: nowUs,
        timeoutSeconds: 1,
        secure: true,
        volumeMounts: [],
        kept: state === 'paused' || state === 'resuming' ? 'memory' : null,
        agentUnresponsive: false,
        durability: null,
        nextExecutionId: state === 'resuming' || state === 'moving' ? nextExecutionId : null,
        nextNodeId: state === 'moving' ? 'next-node' : null,
        replicaId: state === 'moving' ? replicaId : null,
      };
      expect(await insertSandbox(db, sandbox, { concurrentSandboxes: 1000, sandboxes: 1000 })).toBe('inserted');
      return sandbox;
    };
    let seen = 0;
    for (const [name, { run, becomes }] of Object.entries(changes)) {
      for (const state of sandboxStates) {
        const sandbox = await put(state);
        const expected = becomes[state];
        if (expected !== undefined && expected !== 'gone' && expected !== state && !mayBecome(state, expected))
          expect(byNodeAlone).toContain(`${state} -> ${expected}`);

        expect({ name, state, late: await run(db, { ...sandbox, executionId: newUuid() }) }).toMatchObject({
          late: null,
        });
        // Nor does a worker from whom another process took it over, where that matters.
        if (fenced.includes(name)) {
          const late = await run(db, { ...sandbox, replicaId: newUuid() });
          expect({ name, state, late }).toMatchObject({ late: null });
        }
        expect((await findSandboxOfAnyTeam(db, sandbox.sandboxId))?.state).toBe(state);
        const answer = await run(db, sandbox);
        expect({ name, state, changed: answer !== null }).toEqual({ name, state, changed: expected !== undefined });
        const after = (await findSandboxOfAnyTeam(db, sandbox.sandboxId))?.state ?? 'gone';
        expect({ name, state, after }).toEqual({ name, state, after: expected ?? state });
        seen++;
      }
    }
    expect(seen).toBe(Object.keys(changes).length * sandboxStates.length);
  });
});
