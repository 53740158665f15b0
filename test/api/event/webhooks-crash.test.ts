import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChildOptions } from '../crash-child.ts';
import { bundleCrashChild } from '../crash-program.ts';
import { onEachDatabase } from '../databases.ts';
import { call, until } from '../platform.ts';
import { Receiver, isGenuine } from '../webhook-receiver.ts';

const crashes = 2;
const sandboxesEach = 6;
const secret = 'secret of the crash test';

onEachDatabase(database => {
  test('kill -9 amid deliveries: every event arrives, those of one sandbox in order, and a repeated one has the ID of the first', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'atoll-hooks-'));
    await using cleanup = new AsyncDisposableStack();
    cleanup.defer(() => rmSync(directory, { recursive: true, force: true }));
    await using receiver = await Receiver.start();
    // Slow enough that a kill catches deliveries that were sent but not recorded; now and then it fails.
    receiver.answer = (response, _, count) =>
      void setTimeout(() => response.writeHead(count % 7 === 0 ? 500 : 204).end(), 15);
    const options: ChildOptions = {
      location: (await database.location()) ?? { kind: 'sqlite', path: join(directory, 'atoll.db') },
      nodeDirectory: join(directory, 'node'),
      socketPath: join(directory, 'api.sock'),
      seed: 1,
      webhooks: {
        allowPrivateAddresses: true,
        timeoutMs: 500,
        claimMarginMs: 100,
        backoffMs: 20,
        backoffMaxMs: 100,
        pollMs: 20,
        attemptsMax: 100,
      },
    };
    const program = await bundleCrashChild(directory);
    const start = async () => {
      const child = Bun.spawn([process.execPath, program, JSON.stringify(options)], {
        stdout: 'pipe',
        stderr: 'inherit',
        stdin: 'ignore',
      });
      cleanup.defer(async () => {
        child.kill('SIGKILL');
        await child.exited;
      });
      let text = '';
      for await (const chunk of child.stdout) {
        text += new TextDecoder().decode(chunk);
        const [, key] = /ready (\S+)\n/.exec(text) ?? [];
        if (key !== undefined)
          return {
            child,
            ask: (method: string, path: string, body?: unknown) =>
              call(options.socketPath, method, path, body, { 'x-api-key': key }),
          };
      }
      throw new Error('the platform ended before it was ready');
    };

    for (let crash = 0; crash < crashes; crash++) {
      const { child, ask } = await start();
      if (crash === 0) {
        const events = ['created', 'updated', 'killed'].map(change => `sandbox.lifecycle.${change}`);
        expect(
          (await ask('POST', '/events/webhooks', { name: 'x', url: receiver.url, events, signatureSecret: secret }))
            .status,
        ).toBe(201);
      }
      for (let i = 0; i < sandboxesEach; i++) {
        const { sandboxID } = (await ask('POST', '/v2/sandboxes', { templateID: 'base' })).body as {
          sandboxID: string;
        };
        await ask('POST', `/sandboxes/${sandboxID}/timeout`, { timeout: 1000 + i });
        await ask('DELETE', `/sandboxes/${sandboxID}`);
      }
      child.kill('SIGKILL');
      await child.exited;
    }
    const { ask } = await start();
    const told = (await ask('GET', '/events/sandboxes?orderAsc=true&limit=100')).body as Array<{
      id: string;
      sandboxId: string;
    }>;
    expect(told.length).toBeGreaterThanOrEqual(crashes * sandboxesEach * 3);
    await until(() => told.every(({ id }) => receiver.received.some(received => received.id === id)), 60_000);
    expect(receiver.received.every(received => isGenuine(secret, received))).toBe(true);
    const firstOnes = [...new Map(receiver.received.map(({ id, subject }) => [id, subject])).entries()];
    for (const sandboxId of new Set(told.map(event => event.sandboxId))) {
      const arrived = firstOnes.filter(([, subject]) => subject === sandboxId).map(([id]) => id);
      expect(arrived).toEqual(told.filter(event => event.sandboxId === sandboxId).map(({ id }) => id));
    }
  });
});
