import { expect, test } from 'bun:test';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { tryCommand } from '../../base/process/command.ts';
import { networkProbes } from './network.ts';
import { findingOf } from './probe.ts';

async function finding(name: string, port = 0, servesPort = false) {
  const probe = networkProbes({ port, servesPort }).find(probe => probe.name === name);
  if (!probe) throw new Error(`no probe is called ${name}`);
  return findingOf(probe);
}

/** A server that listens at every address until it is disposed of. */
async function listening(port = 0): Promise<{ port: number } & AsyncDisposable> {
  const server = createServer().listen(port);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it listens at no port');
  return {
    port: address.port,
    [Symbol.asyncDispose]: () => new Promise<void>(resolve => server.close(() => resolve())),
  };
}

test('rules and links of sandboxes are tried where nobody sees them', async () => {
  for (const name of ['nftables', 'transparent proxy', 'veth']) expect((await finding(name)).status).toBe('ok');
  expect(readFileSync('/proc/net/dev', 'utf8')).not.toContain('atoll-');
});

test('the port of the platform is its own, free, or somebody else’s', async () => {
  await using taken = await listening();
  const { port } = taken;
  expect(await finding('port', port)).toMatchObject({
    status: 'limited',
    detail: expect.stringContaining(`${port}: `) as string,
    remedy: expect.stringContaining('ATOLL_PORT') as string,
  });
  expect(await finding('port', port, true)).toMatchObject({
    status: 'ok',
    detail: `${port} is served by this installation`,
  });
  await taken[Symbol.asyncDispose]();
  expect(await finding('port', port)).toMatchObject({ status: 'ok', detail: `${port} is free` });
  // The probe gave the port back.
  expect(await finding('port', port)).toMatchObject({ status: 'ok' });
});

test('a way out is a default route of this machine', async () => {
  const route = await tryCommand(['ip', '-4', 'route', 'show', 'default']);
  expect((await finding('way out')).status).toBe(route === '' ? 'limited' : 'ok');
});
