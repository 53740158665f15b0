/** A platform with a fake node, to be killed: `bun crash-child.ts '<json of ChildOptions>'`. Prints `ready` and the API key. */
import { silentLog } from '../../src/base/log.ts';
import { createApiKey, createTeam } from '../../src/api/app/provision-team.ts';
import { registerTemplate } from '../../src/api/app/provision-template.ts';
import { startApi } from '../../src/api/start.ts';
import { openStore } from '../../src/api/store/database.ts';
import type { StoreLocation } from '../../src/api/store/database.ts';
import { findTeam } from '../../src/api/store/team.ts';
import type { WebhookSettings } from '../../src/api/webhooks/settings.ts';
import { FakeNode } from './fake-node.ts';
import { baseTemplate } from './platform.ts';
import { randomOf } from './random.ts';

export type ChildOptions = { location: StoreLocation; nodeDirectory: string; socketPath: string; seed: number; webhooks?: Partial<WebhookSettings> };

const options = JSON.parse(process.argv[2] ?? '') as ChildOptions;
const random = randomOf(options.seed);
const node = new FakeNode(options.nodeDirectory);
// Calls take a moment on both sides of their work, so that a kill meets every one of them half done.
node.before = async () => Bun.sleep(random() * 8);
node.after = async () => Bun.sleep(random() * 8);
const store = await openStore(options.location);
const api = await startApi({ store, node, socketPath: options.socketPath, seed: new Uint8Array(32), log: silentLog, ...(options.webhooks && { webhooks: options.webhooks }) });
const team = (await findTeam(store.db, { slug: 'default' })) ?? (await createTeam(api.app, { name: 'Default', slug: 'default' }));
await registerTemplate(api.app, team, baseTemplate);
const { text } = await createApiKey(api.app, team, 'crash test');
console.log(`ready ${text}`);
