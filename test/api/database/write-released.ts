// `bun test/api/database/write-released.ts`: writes state of this schema, with this version's code, to `released`, for
// later versions. Run it before a migration is added, and commit the file, which must not change afterwards.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dumpStore } from '../../../src/api/database/dump.ts';
import { putInstallation } from '../../../src/api/database/installation.ts';
import { schemaVersion } from '../../../src/api/database/migrate.ts';
import { newUuid } from '../../../src/base/id.ts';
import { beginSession } from '../session-callers.ts';
import { adminToken, Platform } from '../platform.ts';

await using platform = await Platform.start({ features: { volumes: true } });
const { db } = platform.store;
const admin = { 'x-admin-token': adminToken };
const made = async (path: string, body?: object, headers?: Record<string, string>) => {
  const { status, body: answer } = await platform.call('POST', path, body, headers);
  if (status >= 300) throw new Error(`POST ${path} was answered ${status}: ${JSON.stringify(answer)}`);
  return answer as Record<string, string>;
};
await putInstallation(db, { installationId: newUuid(), seedDigest: 'a'.repeat(64), generation: 1, acceptedAtUs: null });
await made('/events/webhooks', { name: 'hook', url: 'https://198.51.100.1/', events: ['sandbox.lifecycle.created'] });
await made('/volumes', { name: 'notes' });
await made('/secrets', { name: 'token', value: 'a secret' });
await made(`/admin/teams/${platform.team.teamId}/api-keys`, { name: 'ci' }, admin);
await made('/sandboxes', {
  templateID: 'base',
  metadata: { of: 'before' },
  envVars: { COLOUR: 'blue' },
  timeout: 3600,
});
const { sandboxID } = await made('/sandboxes', { templateID: 'base', autoPause: true, timeout: 3600 });
await made(`/sandboxes/${sandboxID}/snapshots`, { name: 'kept' });
await made(`/sandboxes/${sandboxID}/pause`);
const ended = await made('/sandboxes', { templateID: 'base' });
await platform.call('DELETE', `/sandboxes/${ended['sandboxID']}`);
const { user } = await platform.user(platform.team);
await beginSession(platform, user.userId);
await made('/invitations', { role: 'developer' }, { ...admin, 'x-team-id': platform.team.teamId });
await platform.call('POST', '/admin/nodes/node-1/drain', { mode: 'wait' }, admin);

const schema = await schemaVersion(db);
const lines: string[] = [];
for await (const { line } of dumpStore(platform.location, join(platform.directory, 'copy.sqlite'))) lines.push(line);
writeFileSync(join(import.meta.dir, 'released', `${schema}.jsonl`), `${lines.join('\n')}\n`);
process.stdout.write(`${schema}: ${lines.length} lines\n`);
