import { expect, test } from 'bun:test';
import { Platform, call, until } from '../platform.ts';
import { Receiver } from '../webhook-receiver.ts';

const hooksOfTeam = 20;
const sandboxesOfTeam = 4;
const slowTeams = 4;
/** The places that are for all. Four teams have the fewest of them if they come together. */
const common = 192;
const slowLeast = 154;

test('teams whose receivers answer slowly leave places to others', async () => {
  await using platform = await Platform.start({
    webhooks: { allowPrivateAddresses: true, timeoutMs: 120_000, pollMs: 20 },
  });
  await using slow = await Receiver.start();
  await using prompt = await Receiver.start();
  slow.answer = () => {};
  const ask = async (key: string, path: string, body: unknown) => {
    const { status } = await call(platform.socketPath, 'POST', path, body, { 'x-api-key': key });
    expect(status).toBe(201);
  };
  const register = (key: string, { url }: Receiver) =>
    ask(key, '/events/webhooks', { name: 'hook', url, events: ['sandbox.lifecycle.created'] });
  const create = (key: string) => ask(key, '/sandboxes', { templateID: 'base' });

  for (let i = 0; i < slowTeams; i++) {
    const { key } = await platform.otherTeam(`slow-${i}`);
    for (let n = 0; n < hooksOfTeam; n++) await register(key, slow);
    for (let n = 0; n < sandboxesOfTeam; n++) await create(key);
  }
  await until(() => slow.received.length >= slowLeast, 30_000);
  await register(platform.key, prompt);
  for (let n = 0; n < sandboxesOfTeam; n++) await create(platform.key);
  await until(() => prompt.received.length === sandboxesOfTeam, 30_000);
  // None of the slow ones has ended meanwhile.
  expect(slow.received.length).toBeLessThanOrEqual(common);
}, 60_000);
