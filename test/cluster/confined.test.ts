import { expect, setDefaultTimeout } from 'bun:test';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PostgresCluster, postgresPrograms, withoutPostgres } from '../api/postgres.ts';
import { holdingsOf } from '../support/leaks.ts';
import { repository } from '../support/platform.ts';
import { testUnless } from '../support/skip.ts';

// A control process with only the rights that the chart gives its container.

setDefaultTimeout(180_000);
const programs = postgresPrograms();
const postgresTest = testUnless(withoutPostgres());

/** The rights that the chart's control container adds to an empty set, as setpriv(1) names them. */
function rights(): string {
  const chart = readFileSync(join(repository, 'ops/helm/atoll/templates/control.yaml'), 'utf8');
  const [, list] = /add: \[([A-Z_, ]+)\]/.exec(chart) ?? [];
  if (list === undefined) throw new Error('the chart names no rights of control');
  return list
    .toLowerCase()
    .replaceAll(/(^|, )/g, '$1+')
    .replaceAll(' ', '');
}

async function withConfined(
  env: Record<string, string>,
  work: (control: Bun.Subprocess<'ignore', 'pipe', 'pipe'>, dataDir: string) => Promise<void>,
): Promise<void> {
  await using postgres = await PostgresCluster.start(programs!);
  const database = await postgres.newDatabase();
  const dataDir = mkdtempSync(join(tmpdir(), 'atoll-confined-'));
  const confined = ['setpriv', `--bounding-set=-all,${rights()}`, '--inh-caps=-all', '--no-new-privs', '--'];
  const child = Bun.spawn([...confined, join(repository, 'bin/atoll'), 'control', '--json'], {
    env: {
      ...(process.env as Record<string, string>),
      ATOLL_DATA_DIR: dataDir,
      ATOLL_PORT: '0',
      ATOLL_DATABASE_URL: database.kind === 'postgres' ? database.url : '',
      ...env,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  try {
    await work(child, dataDir);
  } finally {
    child.kill('SIGKILL');
    await child.exited;
    rmSync(dataDir, { recursive: true });
  }
}

postgresTest('control serves without the rights to mount and to write control groups, and ends cleanly', async () => {
  await withConfined({}, async (control, dataDir) => {
    const { value } = await control.stdout.getReader().read();
    if (value === undefined) throw new Error(await new Response(control.stderr).text());
    const { url } = JSON.parse(new TextDecoder().decode(value)) as { url: string };
    const health = await fetch(`${url}/health`);
    expect(await health.json()).toEqual({ status: 'ok' });
    expect(holdingsOf(dataDir).mounts).toEqual([]);
    control.kill('SIGTERM');
    expect(await control.exited).toBe(0);
  });
});

postgresTest('a directory as the store is refused there, with the reason', async () => {
  await withConfined({ ATOLL_STORE: '/srv/atoll-store' }, async control => {
    expect(await control.exited).not.toBe(0);
    expect(await new Response(control.stderr).text()).toContain('CAP_SYS_ADMIN');
  });
});
