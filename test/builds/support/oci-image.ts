import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as zlib from 'node:zlib';

type LayerSpec = { tar: Uint8Array; compression: 'none' | 'gzip' | 'zstd' };

export type OciImage = {
  /** Every blob by digest, including manifests and the configuration. */
  blobs: Map<string, Uint8Array>;
  /** The manifest, or the index that names it. */
  root: { digest: string; mediaType: string };
};

const indexType = 'application/vnd.oci.image.index.v1+json';
const manifestType = 'application/vnd.oci.image.manifest.v1+json';
const layerType = 'application/vnd.oci.image.layer.v1.tar';

export const digestOf = (bytes: Uint8Array | string): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Assembles an image from tar archives. With `index`, behind a list that names another machine's image first. */
export function makeImage(layers: LayerSpec[], options: { env?: string[]; index?: boolean } = {}): OciImage {
  const blobs = new Map<string, Uint8Array>();
  const add = (bytes: Uint8Array | string) => {
    const content = Buffer.from(bytes);
    blobs.set(digestOf(content), content);
    return { digest: digestOf(content), size: content.length };
  };
  const compress = {
    none: (tar: Uint8Array) => tar,
    gzip: (tar: Uint8Array) => zlib.gzipSync(tar),
    // Node.js before 22.15 has no zstd.
    zstd: (tar: Uint8Array) => zlib.zstdCompressSync(tar),
  };
  const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
  const config = add(
    JSON.stringify({
      architecture,
      os: 'linux',
      config: {
        Env: options.env ?? ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'],
        User: 'nobody',
        WorkingDir: '/var',
        Cmd: ['false'],
      },
      rootfs: { type: 'layers', diff_ids: layers.map(layer => digestOf(layer.tar)) },
      history: layers.map(() => ({ created_by: 'test' })),
    }),
  );
  const descriptors = layers.map(layer => ({
    mediaType: layer.compression === 'none' ? layerType : `${layerType}+${layer.compression}`,
    ...add(compress[layer.compression](layer.tar)),
  }));
  const configDescriptor = { mediaType: 'application/vnd.oci.image.config.v1+json', ...config };
  const manifest = add(
    JSON.stringify({ schemaVersion: 2, mediaType: manifestType, config: configDescriptor, layers: descriptors }),
  );
  if (!options.index) return { blobs, root: { digest: manifest.digest, mediaType: manifestType } };
  const own = { mediaType: manifestType, ...manifest, platform: { os: 'linux', architecture } };
  const foreign = { ...own, platform: { os: 'linux', architecture: 's390x' } };
  const index = add(JSON.stringify({ schemaVersion: 2, mediaType: indexType, manifests: [foreign, own] }));
  return { blobs, root: { digest: index.digest, mediaType: indexType } };
}

/** Writes an image as the directory of an OCI layout. */
export function writeLayout(image: OciImage, directory: string): void {
  for (const [digest, bytes] of image.blobs) {
    const [algorithm = '', hex = ''] = digest.split(':');
    mkdirSync(join(directory, 'blobs', algorithm), { recursive: true });
    writeFileSync(join(directory, 'blobs', algorithm, hex), bytes);
  }
  const manifests = [{ ...image.root, size: image.blobs.get(image.root.digest)?.length }];
  writeFileSync(join(directory, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
  writeFileSync(join(directory, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
}

/** Pushes an image to a registry by the registry's own protocol. */
export async function pushImage(
  image: OciImage,
  registry: string,
  repository: string,
  tag: string,
  authorization?: string,
): Promise<void> {
  const base = `http://${registry}/v2/${repository}`;
  const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
  const isManifest = (bytes: Uint8Array) =>
    bytes.length < 100_000 && /"(manifests|layers)":/.test(Buffer.from(bytes).toString('latin1'));
  const manifests = [...image.blobs].filter(([, bytes]) => isManifest(bytes));
  for (const [digest, bytes] of image.blobs) {
    if (isManifest(bytes)) continue;
    const begun = await fetch(`${base}/blobs/uploads/`, { method: 'POST', headers });
    if (begun.status !== 202) throw new Error(`upload refused: ${begun.status} ${await begun.text()}`);
    const location = new URL(begun.headers.get('location') ?? '', base);
    location.searchParams.set('digest', digest);
    const done = await fetch(location, {
      method: 'PUT',
      headers: { ...headers, 'content-type': 'application/octet-stream' },
      body: Buffer.from(bytes),
    });
    if (done.status !== 201) throw new Error(`blob refused: ${done.status} ${await done.text()}`);
  }
  // The image before the list that names it.
  for (const [digest, bytes] of manifests.sort(
    ([, a], [, b]) => Number(Buffer.from(a).includes('"manifests"')) - Number(Buffer.from(b).includes('"manifests"')),
  )) {
    const text = Buffer.from(bytes).toString();
    const { mediaType } = JSON.parse(text) as { mediaType: string };
    for (const version of digest === image.root.digest ? [digest, tag] : [digest]) {
      const done = await fetch(`${base}/manifests/${version}`, {
        method: 'PUT',
        headers: { ...headers, 'content-type': mediaType },
        body: text,
      });
      if (done.status !== 201) throw new Error(`manifest refused: ${done.status} ${await done.text()}`);
    }
  }
}
