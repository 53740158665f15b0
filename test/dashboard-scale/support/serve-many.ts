/**
 * `bun serve-many.ts COUNT`: an API with that many sandboxes on a node without a machine. Prints a line of JSON that
 * says where it is and how to sign in. Each input line sets the number of changes per second from then on, and is
 * answered with the number of changes so far.
 */
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { loadDashboard } from '../../../src/api/dashboard/files.ts';
import { adminToken, call, Platform } from '../../api/platform.ts';
import { ManyNode } from './many-node.ts';

const atOnce = 16;
const tickMs = 50;
const customers = 40;
const beyond = 1_000_000;
const [count = 0] = process.argv.slice(2).map(Number);

await using platform = await Platform.start({
  // As in production: only tests check answers against the document.
  checkAnswers: false,
  makeNode: directory => new ManyNode(directory),
  dashboard: loadDashboard(join(import.meta.dir, '../../../dist/dashboard')),
  limits: { concurrentSandboxes: beyond, sandboxes: beyond, requestsPerSecond: 0 },
});
const ids: string[] = [];
let made = 0;
const create = async () => {
  const metadata = { customer: `customer-${made++ % customers}`, run: String(made) };
  ids.push((await platform.createSandbox({ timeout: 86_400, metadata })).sandboxID);
};
const kill = async () => {
  // Any of them, not the newest: visible sandboxes change as often as others.
  const [id] = ids.splice(Math.floor(Math.random() * ids.length), 1);
  const { status } = await platform.call('DELETE', `/sandboxes/${id}`);
  if (status !== 204) throw new Error(`kill answered ${status}`);
};
await Promise.all(
  Array.from({ length: atOnce }, async () => {
    while (made < count) await create();
  }),
);

const link = await call(platform.socketPath, 'POST', '/admin/sign-in-links', undefined, {
  'x-admin-token': adminToken,
});
const { path } = link.body as { path: string };
process.stdout.write(`${JSON.stringify({ socketPath: platform.socketPath, path, count: ids.length })}\n`);

let [perSecond, changes, underWay, owed] = [0, 0, 0, 0];
const tick = setInterval(() => {
  owed = Math.min(perSecond, owed + (perSecond * tickMs) / 1000);
  for (; owed >= 1 && underWay < atOnce; owed--) {
    underWay++;
    void (changes++ % 2 === 0 ? create() : kill()).finally(() => underWay--);
  }
}, tickMs);
for await (const line of createInterface({ input: process.stdin })) {
  perSecond = Number(line);
  process.stdout.write(`${JSON.stringify({ changes })}\n`);
}
clearInterval(tick);
