import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { sha256Hex } from '../../src/base/crypto/secret.ts';
import { digestOfFolder } from '../../src/node/builds/base-rootfs/definition.ts';
import { provisioningScripts } from '../../src/node/builds/provision.ts';
import { openLayerCache } from '../../src/node/layers/shared-cache.ts';
import type { Layers } from '../../src/node/layers/store.ts';
import { runToEnd } from './process.ts';
import { repository, startPlatform } from './platform.ts';

const cacheDir = '/var/cache/atoll';

/**
 * The digest of a single layer with everything in the base template, which is then in `layers`. The first caller on
 * this machine makes a platform build the template and packs its layers into one.
 */
export async function ensureBaseLayer(layers: Layers): Promise<string> {
  const cache = openLayerCache(cacheDir, layers);
  const definition = [await digestOfFolder(join(repository, 'templates/base')), ...provisioningScripts()];
  const name = `test-base-${sha256Hex(JSON.stringify(definition)).slice(0, 32)}`;
  using _ = await cache.lock('test-base', () => {}, undefined);
  const [known] = (await cache.take(name))?.layers ?? [];
  if (known !== undefined) return known;
  // Starting a platform leaves the template in the cache.
  await (await startPlatform())[Symbol.asyncDispose]();
  const dir = mkdtempSync(join(cacheDir, 'test-base-'));
  try {
    const images = newestBase().map(digest => join(cacheDir, `${digest.replace(':', '-')}.erofs`));
    // Overlays want the highest layer first. The names are short because newer programs give the kernel at most 255
    // bytes of them.
    const script =
      'set -e; cd $1; shift; lower=; n=0; for image; do n=$((n + 1)); mkdir $n; mount -t erofs -o ro $image $n; lower=$n${lower:+:$lower}; done; ' +
      'mkdir merged; mount -t overlay -o ro,lowerdir=$lower overlay merged; cp -a merged tree';
    const { exitCode, stderr } = await runToEnd(['unshare', '--mount', 'sh', '-c', script, 'pack', dir, ...images]);
    if (exitCode !== 0) throw new Error(stderr);
    const digest = await layers.pack(join(dir, 'tree'));
    await cache.keep(name, { layers: [digest], facts: null });
    return digest;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function newestBase(): string[] {
  const entries = readdirSync(cacheDir)
    .filter(name => /^base-[0-9a-f]{32}\.json$/.test(name))
    .map(name => join(cacheDir, name));
  const [newest = ''] = entries.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  return (JSON.parse(readFileSync(newest, 'utf8')) as { layers: string[] }).layers;
}
