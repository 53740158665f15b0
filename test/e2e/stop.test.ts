import { expect, test } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { startPlatform } from '../support/platform.ts';
import { waitFor } from '../support/process.ts';

const familyOf = (pid: number) =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(name => {
      try {
        return (
          Number(name) === pid ||
          readFileSync(`/proc/${name}/stat`, 'utf8')
            .replace(/^.*\) . /s, '')
            .startsWith(`${pid} `)
        );
      } catch {
        return false; // it has ended
      }
    })
    .map(Number);

test('a signal to every process of the platform at once, as service managers send it, is a clean stop', async () => {
  await using platform = await startPlatform();
  expect((await platform.api('POST', '/v2/sandboxes', { templateID: 'base' })).status).toBe(201);
  const { pid } = platform.ready;
  const family = familyOf(pid).filter(
    member => !/\/atoll\d+\/s\d/.test(readFileSync(`/proc/${member}/cgroup`, 'utf8')),
  );
  expect(family.length).toBeGreaterThanOrEqual(2);
  for (const member of family) process.kill(member, 'SIGTERM');
  await waitFor('the platform to end', () => !existsSync(`/proc/${pid}`), 30_000);
  await platform.restart();
  expect(platform.log()).not.toContain('helper has ended');
  expect(((await (await platform.api('GET', '/v2/sandboxes')).json()) as unknown[]).length).toBe(1);
}, 60_000);

test('programs in a sandbox get the signals that a terminal sends', async () => {
  await using platform = await startPlatform();
  const sandbox = (await (await platform.api('POST', '/v2/sandboxes', { templateID: 'base' })).json()) as {
    sandboxID: string;
    envdAccessToken: string;
  };
  const message = Buffer.from(
    JSON.stringify({
      process: { cmd: '/bin/sh', args: ['-c', 'grep SigIgn /proc/self/status; grep SigIgn /proc/1/status'] },
    }),
  );
  const body = Buffer.concat([Buffer.from([0, 0, 0, 0, 0]), message]);
  body.writeUInt32BE(message.length, 1);
  const answer = await fetch(`${platform.ready.url}/process.Process/Start`, {
    method: 'POST',
    headers: {
      'E2b-Sandbox-Id': sandbox.sandboxID,
      'E2b-Sandbox-Port': '49983',
      'X-Access-Token': sandbox.envdAccessToken,
      'Content-Type': 'application/connect+json',
    },
    body,
  });
  const output = [...(await answer.text()).matchAll(/"stdout":"([^"]+)"/g)]
    .map(match => Buffer.from(match[1] as string, 'base64').toString())
    .join('');
  const ignored = [...output.matchAll(/SigIgn:\s+([0-9a-f]+)/g)].map(match => BigInt(`0x${match[1]}`));
  expect(ignored).toHaveLength(2);
  const terminalSignals = (1n << 0n) | (1n << 1n) | (1n << 14n); // SIGHUP, SIGINT, SIGTERM
  for (const mask of ignored) expect(mask & terminalSignals).toBe(0n);
}, 60_000);
