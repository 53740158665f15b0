import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runToEnd } from './process.ts';

const cacheDir = '/var/cache/atoll';
const kept = join(cacheDir, 'promtool');
const fetchTimeoutMs = 5 * 60_000;

/**
 * Prometheus' own checker of rules: the one in PATH, or that of Debian's package, which is fetched once (19 MB) and not
 * installed, because it would start a server. Otherwise the reason why there is none.
 */
export async function findPromtool(): Promise<{ program: string } | { missing: string }> {
  const installed = Bun.which('promtool');
  if (installed !== null) return { program: installed };
  if (existsSync(kept)) return { program: kept };
  if (process.getuid?.() !== 0 || Bun.which('apt-get') === null)
    return { missing: 'promtool is not installed (Debian: prometheus)' };
  mkdirSync(cacheDir, { recursive: true });
  const folder = mkdtempSync(join(cacheDir, 'promtool-'));
  try {
    const script = 'apt-get download prometheus && dpkg-deb --extract prometheus_*.deb tree';
    const { exitCode } = await runToEnd(['sh', '-c', script], { cwd: folder, timeoutMs: fetchTimeoutMs });
    if (exitCode !== 0) return { missing: 'promtool is not installed, and the mirror has no package prometheus' };
    renameSync(join(folder, 'tree/usr/bin/promtool'), kept);
    return { program: kept };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
