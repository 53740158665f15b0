import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { to } from './support/fixture.ts';

test('what fails where nobody catches it costs its own request alone', async () => {
  const edge = Bun.spawn([process.execPath, join(import.meta.dir, 'support/edge-process.ts')], { stdout: 'pipe' });
  await using server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('served') });
  try {
    const port = Number(new TextDecoder().decode((await edge.stdout.getReader().read()).value));
    const ask = (sandboxId: string) =>
      fetch(`http://127.0.0.1:${port}`, { headers: to(sandboxId, Number(server.port)) });
    for (let round = 0; round < 3; round++) {
      expect((await ask('faulty')).status).toBe(502);
      expect(await (await ask('one')).text()).toBe('served');
    }
    expect(edge.exitCode).toBe(null);
  } finally {
    edge.kill();
    await edge.exited;
  }
});
