/**
 * A platform with a fake node, to be killed: `bun crash-child.ts '<json of ChildOptions>'`. Prints `ready` and the API
 * key.
 */
import { silentLog } from '../../src/base/telemetry/log.ts';
import { createTeam } from '../../src/api/team/rules/provision-team.ts';
import { createApiKey } from '../../src/api/credential/rules/api-keys.ts';
import { registerTemplate } from './support/register-template.ts';
import { startApi } from '../../src/api/start.ts';
import { openStore } from '../../src/api/database/database.ts';
import type { StoreLocation } from '../../src/api/database/db.ts';
import { findTeam } from '../../src/api/team/store/team.ts';
import type { WebhookSettings } from '../../src/api/webhook/delivery/settings.ts';
import { FakeNode, type FakeCall } from './fake-node.ts';
import { baseTemplate } from './platform.ts';
import { randomOf } from './random.ts';

export type ChildOptions = {
  location: StoreLocation;
  nodeDirectory: string;
  socketPath: string;
  seed: number;
  webhooks?: Partial<WebhookSettings>;
  /** A call of the node that never comes back. */
  hangsAt?: FakeCall;
  leaseSeconds?: number;
};

const options = JSON.parse(process.argv[2] ?? '') as ChildOptions;
const random = randomOf(options.seed);
const node = new FakeNode(options.nodeDirectory);
// Calls take a moment before and after their work, so that a kill catches each of them half done.
node.before = async call => (call === options.hangsAt ? new Promise(() => {}) : Bun.sleep(random() * 8));
node.after = async () => Bun.sleep(random() * 8);
const store = await openStore(options.location);
const api = await startApi({
  store,
  node,
  socketPath: options.socketPath,
  seed: new Uint8Array(32),
  log: silentLog,
  features: { volumes: true },
  ...(options.leaseSeconds !== undefined && { replica: { leaseSeconds: options.leaseSeconds } }),
  ...(options.webhooks && { webhooks: options.webhooks }),
});
const team =
  (await findTeam(store.db, { slug: 'default' })) ??
  (await createTeam(api.parts, { name: 'Default', slug: 'default' }));
await registerTemplate(api.parts, team, baseTemplate);
const { text } = await createApiKey(api.parts, team, 'crash test');
console.log(`ready ${text}`);
