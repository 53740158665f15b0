import assert from 'node:assert/strict';
import { mkdtemp, open, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Sandbox } from 'e2b';
import { noBrowser } from '../dashboard/support/browser.ts';
import { startSignedIn } from '../dashboard/support/signed-in.ts';

const mebibyte = 1024 ** 2;
const uploadMib = Number(process.env['DASHBOARD_UPLOAD_MIB'] ?? 1_024);
/** How much more memory a process of the platform may take while the file goes through. */
const growthMibMax = 64;
const everyMs = 100;
const timeoutMs = 8 * 60_000;

describe('a large file in the dashboard', { skip: noBrowser ?? false }, () => {
  test(`${uploadMib} MiB go up from a browser, and no process of the platform holds them`, async t => {
    const folder = await mkdtemp(join(tmpdir(), 'atoll-upload-'));
    const signedIn = await startSignedIn();
    try {
      const { page, platform, options } = signedIn;
      const sandbox = await Sandbox.create('base', { ...options, timeoutMs: 900_000 });
      const file = await open(join(folder, 'large.bin'), 'w');
      await file.truncate(uploadMib * mebibyte);
      await file.close();
      await page.goto(`/dashboard/sandboxes/${sandbox.sandboxId}/files`);
      await page.getByRole('button', { name: 'File .bashrc', exact: true }).waitFor();
      const before = await memoryOf(platform.pid());
      const most = new Map(before);
      const stop = new AbortController();
      const watching = (async () => {
        while (!stop.signal.aborted) {
          for (const [pid, mib] of await memoryOf(platform.pid())) most.set(pid, Math.max(most.get(pid) ?? 0, mib));
          await sleep(everyMs);
        }
      })();
      const begunMs = performance.now();
      await page.getByLabel('Files to upload').setInputFiles(join(folder, 'large.bin'));
      await page.getByText('large.bin uploaded').waitFor({ timeout: timeoutMs });
      const tookMs = performance.now() - begunMs;
      stop.abort();
      await watching;
      const growth = [...before].map(([pid, mib]) => (most.get(pid) ?? mib) - mib);
      t.diagnostic(`${(tookMs / 1000).toFixed(1)} s; growth of each process: ${growth.map(Math.round).join(', ')} MiB`);
      const { stdout } = await sandbox.commands.run('stat -c %s /home/user/large.bin');
      assert.equal(Number(stdout), uploadMib * mebibyte);
      assert.ok(growth.length >= 3 && growth.every(mib => mib <= growthMibMax), growth.join(', '));
      assert.deepEqual(signedIn.window.complaints, []);
    } finally {
      await signedIn[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    }
  });
});

/** The memory of the supervisor and each of its processes, MiB, by process. */
async function memoryOf(supervisor: number): Promise<Map<number, number>> {
  const found = new Map<number, number>();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const status = await readFile(`/proc/${name}/status`, 'utf8').catch(() => '');
    const parent = Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]);
    const kib = Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]);
    if ((Number(name) === supervisor || parent === supervisor) && Number.isFinite(kib))
      found.set(Number(name), kib / 1024);
  }
  return found;
}
