import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../setup/run.mjs';
import { settled } from './archive.mjs';
import { runtimePackages } from './debian-package.mjs';
import { writeBase } from './image/base.mjs';
import { compressedLayer, packLayout, writeLayout } from './image/layout.mjs';
import { installTree, settle } from './tree.mjs';

/**
 * Writes `atoll-VERSION-linux-ARCHITECTURE.oci.tar`, an image that `docker load`, `podman load`, `skopeo copy
 * oci-archive:` and `ctr image import` accept: the distribution's packages as one layer, the release as another. `base`
 * writes the archive of the first layer. Errors: `Problem` if that is impossible; then nothing is left of the image.
 */
export async function writeImage(tree, output, facts, base = writeBase) {
  const layout = join(output, 'image');
  const file = join(output, `atoll-${facts.version}-linux-${facts.architecture}.oci.tar`);
  mkdirSync(layout);
  try {
    const packages = join(layout, 'base.tar');
    await base(packages, runtimePackages, facts.epoch);
    const layers = [
      await compressedLayer(packages, layout, 'mmdebstrap'),
      await compressedLayer(await releaseLayer(tree, layout, facts), layout, 'npm run release'),
    ];
    writeLayout(layout, layers, facts);
    await packLayout(layout, file, facts.epoch);
  } finally {
    rmSync(layout, { recursive: true, force: true });
  }
}

async function releaseLayer(tree, layout, { epoch }) {
  const place = join(layout, 'place');
  const tar = join(layout, 'release.tar');
  installTree(tree, place, epoch);
  settle(place, epoch);
  await run(['tar', ...settled(epoch), '--transform=s,^\\./,,S', '-cf', tar, '-C', place, './usr']);
  rmSync(place, { recursive: true });
  return tar;
}
