import { expect, test } from 'bun:test';
import { putClusterNode } from '../../../src/api/cluster/store/nodes.ts';
import { reconcileCordons } from '../../../src/api/operator/reconcilers/cordons.ts';
import { findNodeStatus, setNodeStatus } from '../../../src/api/placement/node-status.ts';
import { steadyClock } from '../../../src/base/clock.ts';
import { silentLog } from '../../../src/base/telemetry/log.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform } from '../platform.ts';

// Machines that Kubernetes takes out of service and back.

onEachDatabase(database => {
  test('what Kubernetes cordons is emptied until it does not any more; what an operator wants stays', async () => {
    await using platform = await Platform.start({ database });
    const { db } = platform.store;
    const { clock } = steadyClock();
    const machines = { 'in-cluster': '10.0.0.7:3010', 'by-operator': '[fd00::8]:3010', elsewhere: '192.0.2.9:3010' };
    for (const [nodeId, address] of Object.entries(machines))
      await putClusterNode(db, { nodeId, address, certificates: [], renewAtUs: 0, joinedAtUs: 0 }, null);
    await setNodeStatus(db, { nodeId: 'by-operator', status: 'moving', changedAtUs: clock() });
    let addresses = new Set(['10.0.0.7', 'fd00::8', 'some-other']);
    const round = () => reconcileCordons({ db, clock, log: silentLog, cordoned: async () => addresses });
    const statuses = () =>
      Promise.all(Object.keys(machines).map(async nodeId => (await findNodeStatus(db, nodeId))?.status ?? null));
    // Two control processes look at the same time.
    await Promise.all([round(), round()]);
    expect(await statuses()).toEqual(['evicting', 'moving', null]);
    await round();
    expect(await statuses()).toEqual(['evicting', 'moving', null]);
    addresses = new Set();
    await Promise.all([round(), round()]);
    expect(await statuses()).toEqual(['ready', 'moving', null]);
    addresses = new Set(['10.0.0.7']);
    await round();
    expect(await statuses()).toEqual(['evicting', 'moving', null]);
    // If Kubernetes does not answer, nothing changes.
    await expect(
      reconcileCordons({ db, clock, log: silentLog, cordoned: () => Promise.reject(new Error('away')) }),
    ).rejects.toThrow('away');
    expect(await statuses()).toEqual(['evicting', 'moving', null]);
  });
});
