import { expect, test } from 'bun:test';
import { Sandbox } from 'e2b';
import { Platform } from '../platform.ts';

/** The API on a TCP port of the loopback, as the SDK needs it. */
function onTcp(socketPath: string) {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: request =>
      fetch(new Request(`http://api${request.url.slice(new URL(request.url).origin.length)}`, request), {
        unix: socketPath,
      }),
  });
}

test('the published SDK creates, lists, extends and kills', async () => {
  await using platform = await Platform.start();
  const server = onTcp(platform.socketPath);
  const connection = { apiKey: platform.key, apiUrl: `http://127.0.0.1:${server.port}` };
  try {
    const metadata = { 'user id': 'a=b&c %41', app: 'ü' };
    const sandbox = await Sandbox.create('base', { ...connection, metadata, timeoutMs: 100_000 });
    for (let i = 0; i < 3; i++) await Sandbox.create({ ...connection });

    const info = await sandbox.getInfo();
    expect(info).toMatchObject({
      sandboxId: sandbox.sandboxId,
      metadata,
      state: 'running',
      cpuCount: 2,
      memoryMB: 1024,
    });
    expect(info.endAt.getTime() - info.startedAt.getTime()).toBe(100_000);
    await sandbox.setTimeout(500_000);
    expect((await sandbox.getInfo()).endAt.getTime() - Date.now()).toBeGreaterThan(400_000);

    const paginator = Sandbox.list({ ...connection, limit: 3 });
    const seen: string[] = [];
    while (paginator.hasNext) seen.push(...(await paginator.nextItems()).map(({ sandboxId }) => sandboxId));
    expect(new Set(seen).size).toBe(4);
    const filtered = await Sandbox.list({ ...connection, query: { metadata, state: ['running'] } }).nextItems();
    expect(filtered.map(({ sandboxId }) => sandboxId)).toEqual([sandbox.sandboxId]);

    const again = await Sandbox.connect(sandbox.sandboxId, connection);
    expect(again.sandboxId).toBe(sandbox.sandboxId);
    expect(await sandbox.kill()).toBe(true);
    expect(await Sandbox.kill(sandbox.sandboxId, connection)).toBe(false);
    await expect(Sandbox.getInfo(sandbox.sandboxId, connection)).rejects.toThrow(
      expect.objectContaining({ name: 'SandboxNotFoundError' }),
    );
    await expect(Sandbox.connect(sandbox.sandboxId, connection)).rejects.toThrow(
      expect.objectContaining({ name: 'SandboxNotFoundError' }),
    );
    await expect(Sandbox.create('nothing', connection)).rejects.toThrow('404');
    await expect(Sandbox.create({ ...connection, apiKey: `e2b_${'0'.repeat(40)}` })).rejects.toThrow(
      expect.objectContaining({ name: 'AuthenticationError' }),
    );
  } finally {
    await server.stop(true);
  }
});
