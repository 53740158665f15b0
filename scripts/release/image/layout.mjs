import { createHash } from 'node:crypto';
import { createReadStream, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../setup/run.mjs';
import { settled } from '../archive.mjs';
import { settle } from '../tree.mjs';

// An image as files in the OCI image layout (image-layout.md), plus the list by which `docker load` found images before
// it could read that layout (Docker 25).

const types = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
};

/** Where an installation in a container keeps everything; the same as in docs/configuration.md. */
const dataDirectory = '/var/lib/atoll';
const servedPort = '3000/tcp';

/** Compresses a layer's archive into the layout, and removes the archive. `madeBy`: recorded in the image's history. */
export async function compressedLayer(tar, layout, madeBy) {
  const diffId = await digestOf(tar);
  // Without the name and time of the file that it compresses.
  await run(['gzip', '--no-name', '-6', '--force', tar]);
  const digest = await digestOf(`${tar}.gz`);
  const blob = blobPath(layout, digest);
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
  renameSync(`${tar}.gz`, blob);
  return { blob, digest, size: statSync(blob).size, diffId, madeBy };
}

/**
 * Writes the configuration, manifest and index of an image with `layers`, lowest first, whose blobs are in the layout.
 */
export function writeLayout(layout, layers, facts) {
  const { version, architecture } = facts;
  const config = writeBlob(layout, types.config, configOf(layers, facts));
  const manifest = writeBlob(layout, types.manifest, {
    schemaVersion: 2,
    mediaType: types.manifest,
    config,
    layers: layers.map(({ digest, size }) => ({ mediaType: types.layer, digest, size })),
    annotations: labelsOf(facts),
  });
  const platform = { architecture, os: 'linux' };
  const names = {
    'org.opencontainers.image.ref.name': version,
    'io.containerd.image.name': `docker.io/library/atoll:${version}`,
  };
  writeJson(join(layout, 'index.json'), {
    schemaVersion: 2,
    mediaType: types.index,
    manifests: [{ ...manifest, platform, annotations: names }],
  });
  writeJson(join(layout, 'oci-layout'), { imageLayoutVersion: '1.0.0' });
  const nameOf = ({ digest }) => `blobs/sha256/${digest.slice('sha256:'.length)}`;
  writeJson(join(layout, 'manifest.json'), [
    { Config: nameOf(config), RepoTags: [`atoll:${version}`], Layers: layers.map(nameOf) },
  ]);
}

/** Packs a layout into the archive `file`, and removes the layout. */
export async function packLayout(layout, file, epoch) {
  settle(layout, epoch);
  await run(['tar', ...settled(epoch), '--transform=s,^\\./,,S', '-cf', file, '-C', layout, '.']);
  rmSync(layout, { recursive: true });
}

const labelsOf = ({ version, description, commit }) => ({
  'org.opencontainers.image.title': 'atoll',
  'org.opencontainers.image.description': description,
  'org.opencontainers.image.version': version,
  'org.opencontainers.image.revision': commit,
  'org.opencontainers.image.licenses': 'Apache-2.0',
});

function configOf(layers, facts) {
  const created = new Date(facts.epoch * 1000).toISOString().replace('.000Z', 'Z');
  return {
    created,
    architecture: facts.architecture,
    os: 'linux',
    config: {
      Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'LANG=C.UTF-8'],
      Entrypoint: ['/usr/bin/atoll'],
      // In the foreground, without a person watching: its log tells what it does.
      Cmd: ['up', '--service'],
      WorkingDir: '/',
      StopSignal: 'SIGTERM',
      ExposedPorts: { [servedPort]: {} },
      Volumes: { [dataDirectory]: {} },
      Labels: labelsOf(facts),
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ madeBy }) => ({ created, created_by: madeBy })),
  };
}

function writeBlob(layout, mediaType, value) {
  const bytes = Buffer.from(JSON.stringify(value));
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
  writeFileSync(blobPath(layout, digest), bytes);
  return { mediaType, digest, size: bytes.length };
}

const writeJson = (path, value) => writeFileSync(path, JSON.stringify(value));
const blobPath = (layout, digest) => join(layout, 'blobs/sha256', digest.slice('sha256:'.length));

async function digestOf(path) {
  const hash = createHash('sha256');
  for await (const part of createReadStream(path)) hash.update(part);
  return `sha256:${hash.digest('hex')}`;
}
