import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { putClusterNode } from '../../../src/api/cluster/store/nodes.ts';
import { createApiKey } from '../../../src/api/credential/rules/api-keys.ts';
import { openStore } from '../../../src/api/database/database.ts';
import { startApi, type Api } from '../../../src/api/start.ts';
import type { TeamLimits } from '../../../src/api/team/record.ts';
import { createTeam } from '../../../src/api/team/rules/provision-team.ts';
import { registerTemplate } from './register-template.ts';
import { newUuid } from '../../../src/base/id.ts';
import { silentLog } from '../../../src/base/telemetry/log.ts';
import { platformVersion } from '../../../src/base/version.ts';
import type { ClusterLinks } from '../../../src/protocol/cluster.ts';
import type { NodeInfo, NodeProtocol } from '../../../src/protocol/node.ts';
import { nodeTable } from '../../../src/protocol/wire/node-table.ts';
import { wiredInMemory } from '../../wire/support/pair.ts';
import { FakeNode } from '../fake-node.ts';
import { type Answer, baseTemplate, call, until } from '../platform.ts';
import { SharedDatabases } from '../postgres.ts';

/** Control processes on one PostgreSQL, and machines that only record what they are told. */
export type FakeCluster = AsyncDisposable & {
  apis: Api[];
  machines: { nodeId: string; node: FakeNode }[];
  /** Sends a request to a control process, given by its number, with a team's key. */
  call(control: number, method: string, path: string, body?: unknown): Promise<Answer>;
};

/** Starts one. `machines`: what each of them reports about itself besides the usual. */
export async function startFakeCluster(
  programs: string,
  {
    controls,
    machines: facts,
    limits = {},
  }: { controls: number; machines: Partial<NodeInfo>[]; limits?: Partial<TeamLimits> },
): Promise<FakeCluster> {
  await using started = new AsyncDisposableStack();
  const postgres = started.use(await SharedDatabases.open(programs));
  const location = await postgres.newStore();
  const folder = mkdtempSync(join(tmpdir(), 'atoll-fake-cluster-'));
  started.defer(() => rmSync(folder, { recursive: true, force: true }));
  const machines = facts.map((info, number) => {
    const node = new FakeNode(join(folder, `node${number}`));
    const nodeId = newUuid();
    const own = node.info.bind(node);
    node.info = async () => ({ ...(await own()), ...info, nodeId });
    return { nodeId, node };
  });
  const apis: Api[] = [];
  const socketOf = (number: number) => join(folder, `api${number}.sock`);
  for (let number = 0; number < controls; number++) {
    const store = started.use(await openStore(location));
    if (number === 0)
      for (const { nodeId } of machines) {
        const row = {
          nodeId,
          address: '203.0.113.2:3010',
          certificates: [],
          renewAtUs: Number.MAX_SAFE_INTEGER,
          joinedAtUs: 0,
        };
        await putClusterNode(store.db, row, null);
      }
    const api = await startApi({
      socketPath: socketOf(number),
      store,
      cluster: { links: linksTo(machines), isolationSeconds: 60 },
      seed: new Uint8Array(32).fill(3),
      limits: { requestsPerSecond: 0, ...limits },
      log: silentLog,
    });
    started.defer(() => api.stop());
    apis.push(api);
  }
  const [first] = apis;
  if (!first) throw new Error('there is no control process');
  const team = await createTeam(first.parts, { name: 'T', slug: 't' });
  const key = { 'x-api-key': (await createApiKey(first.parts, team, 'k')).text };
  await registerTemplate(first.parts, team, baseTemplate);
  await until(() => apis.every(({ parts }) => parts.nodes.list().length === machines.length), 60_000);
  const disposal = started.move();
  return {
    apis,
    machines,
    call: (control, method, path, body) => call(socketOf(control), method, path, body, key),
    [Symbol.asyncDispose]: () => disposal.disposeAsync(),
  };
}

function linksTo(machines: FakeCluster['machines']): ClusterLinks {
  const connect = (nodeId: string) => {
    const node = machines.find(machine => machine.nodeId === nodeId)?.node;
    if (!node) throw new Error(`no machine ${nodeId}`);
    const beat = async () => {
      const said = { epoch: 'one', nowMs: performance.now(), bootId: 'boot', release: platformVersion };
      return { ...said, info: await node.info(), isPausing: false };
    };
    const layers = { missing: async () => [] };
    const { remote } = wiredInMemory(nodeTable, node as NodeProtocol, 'api');
    return { gate: { beat }, node: remote, layers, drop() {}, close() {} };
  };
  return { connect } as unknown as ClusterLinks;
}
