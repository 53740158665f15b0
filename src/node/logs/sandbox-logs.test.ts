import { afterEach, expect, mock, spyOn, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '../../base/telemetry/log.ts';
import { openSandboxLogs } from './sandbox-logs.ts';

afterEach(() => mock.restore());

/** The logs of a node whose clock the test sets. */
function openLogs() {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-sandbox-logs-'));
  let nowMs = 1_000;
  spyOn(performance, 'now').mockImplementation(() => nowMs);
  const logs = openSandboxLogs({ directory, bytesMax: 1 << 30, log: silentLog });
  return {
    logs,
    pass: (ms: number) => void (nowMs += ms),
    deny: (times: number, sandboxId = 's') => {
      for (; times > 0; times--) logs.denied(sandboxId, { host: 'a.test', port: 443, rule: 'denyOut' });
    },
    read: async (sandboxId = 's') =>
      (await logs.read({ sandboxId, limit: 1000, backward: false })).map(({ level, logger, message, fields }) => ({
        ...{ level, logger, message, fields },
      })),
    async [Symbol.asyncDispose]() {
      await logs.close();
      rmSync(directory, { recursive: true });
    },
  };
}
const denied = 'denied: host a.test port 443 by rule denyOut';

test('refused connections are in the log of the sandbox', async () => {
  await using node = openLogs();
  node.deny(1);
  const fields = { event: 'denied', host: 'a.test', port: '443', rule: 'denyOut' };
  expect(await node.read()).toEqual([{ level: 'warn', logger: 'network', message: denied, fields }]);
});

test('many refusals are logged fifty at once, then five a second, with how many were left out', async () => {
  await using node = openLogs();
  const messages = async () => (await node.read()).map(({ message }) => message);
  node.deny(60);
  expect(await messages()).toEqual(Array.from({ length: 50 }, () => denied));
  node.pass(199);
  node.deny(1);
  expect(await messages()).toHaveLength(50);
  node.pass(1);
  node.deny(1);
  expect((await messages()).at(-1)).toBe(`${denied} (and 11 more that are not in the log)`);
  node.pass(1_000);
  node.deny(9);
  expect((await messages()).slice(51)).toEqual(Array.from({ length: 5 }, () => denied));
  // Other sandboxes have their own count, and save up fifty at most.
  node.deny(60, 'other');
  expect(await node.read('other')).toHaveLength(50);
  node.pass(3_600_000);
  node.deny(60);
  expect((await messages()).slice(56)).toHaveLength(50);
});

test('a sandbox that was left begins anew', async () => {
  await using node = openLogs();
  node.deny(60);
  await node.logs.leave('s');
  node.deny(1);
  expect((await node.read()).map(({ message }) => message)).toEqual(Array.from({ length: 51 }, () => denied));
});

test('traffic is logged if there was any', async () => {
  await using node = openLogs();
  node.logs.traffic('s', { bytesOut: 0, bytesIn: 0, denied: 0 });
  expect(await node.read()).toEqual([]);
  for (const counters of [
    { bytesOut: 1, bytesIn: 0, denied: 0 },
    { bytesOut: 0, bytesIn: 2, denied: 0 },
    { bytesOut: 0, bytesIn: 0, denied: 3 },
  ])
    node.logs.traffic('s', counters);
  expect((await node.read()).map(({ message }) => message)).toEqual([
    '1 bytes sent, 0 received, 0 times refused',
    '0 bytes sent, 2 received, 0 times refused',
    '0 bytes sent, 0 received, 3 times refused',
  ]);
  expect((await node.read())[2]?.fields).toEqual({ event: 'traffic', bytesOut: '0', bytesIn: '0', denied: '3' });
});
