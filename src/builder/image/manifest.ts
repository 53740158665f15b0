import { AtollError } from '../../base/error.ts';
import { sha256Hex } from '../../base/crypto/secret.ts';
import { imageLayersMax, type ImageDescription } from '../../protocol/builder.ts';
import type { ImageStore } from './registry.ts';
import { parseJson } from '../../base/json-text.ts';

type Descriptor = {
  digest?: string;
  size?: number;
  mediaType?: string;
  platform?: { architecture?: string; os?: string };
};
type Manifest = { manifests?: Descriptor[]; config?: Descriptor; layers?: Descriptor[]; mediaType?: string };
type Config = { architecture?: string; config?: { Env?: string[] | null }; rootfs?: { diff_ids?: string[] } };

/** A list of images may name other lists. */
const nestedIndexesMax = 4;
const configBytesMax = 8 << 20;

/**
 * Finds the image for this machine's architecture. Checks every byte against its digest. Errors: `invalid`,
 * `not_found`.
 */
export async function readImage(store: ImageStore, version: string): Promise<ImageDescription> {
  let { manifest, digest } = await readManifest(store, version);
  for (let depth = 0; Array.isArray(manifest.manifests) && depth < nestedIndexesMax; depth++)
    ({ manifest, digest } = await readManifest(store, choose(manifest.manifests)));
  const { config, layers } = manifest;
  if (!config?.digest || !Array.isArray(layers))
    throw new AtollError('invalid', 'the image has no manifest of a kind that is supported (schema 1 is not)');
  if (layers.length > imageLayersMax)
    throw new AtollError('invalid', `the image has more than ${imageLayersMax} layers`);
  const { config: settings, rootfs } = objectOf(await readBlob(store, digestIn(config)), 'configuration') as Config;
  const diffIds = rootfs?.diff_ids ?? [];
  if (!Array.isArray(diffIds) || diffIds.some(diffId => !isDigest(diffId)))
    throw new AtollError('invalid', 'the image names its layers by digests that are not SHA-256');
  if (diffIds.length !== layers.length)
    throw new AtollError('invalid', 'the image names another number of layers than it has');
  return {
    digest,
    env: environmentOf(settings?.Env ?? []),
    layers: layers.map((layer, index) => ({
      digest: digestIn(layer),
      size: Number.isSafeInteger(layer.size) ? Math.max(Number(layer.size), 0) : 0,
      diffId: diffIds[index] ?? '',
    })),
  };
}

async function readManifest(store: ImageStore, version: string): Promise<{ manifest: Manifest; digest: string }> {
  const bytes = await store.manifest(version);
  const digest = `sha256:${sha256Hex(bytes)}`;
  if (version.startsWith('sha256:') && version !== digest)
    throw new AtollError('invalid', 'the manifest of the image is not the one that its digest names');
  const manifest = objectOf(bytes, 'manifest') as Manifest;
  for (const list of [manifest.manifests, manifest.layers]) {
    if (Array.isArray(list) && !list.every(item => typeof item === 'object' && item !== null))
      throw new AtollError('invalid', 'the manifest of the image has a form that is not known');
  }
  return { manifest, digest };
}

function objectOf(bytes: Uint8Array, what: string): object {
  const value = parseJson(Buffer.from(bytes).toString());
  if (typeof value === 'object' && value !== null) return value;
  throw new AtollError('invalid', `the ${what} of the image is not JSON`);
}

/** `NAME=value` each. */
function environmentOf(pairs: unknown): Record<string, string> {
  if (!Array.isArray(pairs) || !pairs.every(pair => typeof pair === 'string'))
    throw new AtollError('invalid', 'the image has an environment of no known form');
  return Object.fromEntries(
    pairs
      .filter(pair => pair.indexOf('=') > 0)
      .map(pair => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
  );
}

const architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';

function choose(manifests: Descriptor[]): string {
  const fits = manifests.find(
    ({ platform }) => platform?.architecture === architecture && (platform.os ?? 'linux') === 'linux',
  );
  // A single image that names no platform serves any.
  const only = manifests.length === 1 && manifests[0]?.platform === undefined ? manifests[0] : undefined;
  const found = fits ?? only;
  if (!found) throw new AtollError('invalid', `the image is not made for linux/${architecture}`);
  return digestIn(found);
}

function digestIn({ digest }: Descriptor): string {
  if (!isDigest(digest)) throw new AtollError('invalid', 'the image names something by a digest that is not SHA-256');
  return digest;
}

function isDigest(text: unknown): text is string {
  return typeof text === 'string' && /^sha256:[0-9a-f]{64}$/.test(text);
}

async function readBlob(store: ImageStore, digest: string): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of await store.blob(digest)) {
    length += part.length;
    if (length > configBytesMax) throw new AtollError('invalid', 'the configuration of the image is too long');
    parts.push(part);
  }
  const bytes = Buffer.concat(parts);
  if (digest !== `sha256:${sha256Hex(bytes)}`)
    throw new AtollError('invalid', 'the configuration of the image is not what its digest says');
  return bytes;
}
