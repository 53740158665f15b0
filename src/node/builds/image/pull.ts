import { createHash } from 'node:crypto';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import type { BuildState, RegistryCredential } from '../../../protocol/build.ts';
import type { BuildContext } from '../build-context.ts';
import { makeLayer } from '../layer/make-layer.ts';
import { loginOf } from './credential.ts';
import { openImageFile } from './image-file.ts';
import { readImage, type Image } from './manifest.ts';
import { openRegistry, type ImageStore } from './registry.ts';
import { originOf, readImageSettings, type ImageSettings } from './settings.ts';

/** Layers fetched and made at a time. */
const layersAtOnce = 3;
/** Of one layer as it is transferred. */
const blobBytesMax = 10 * 2 ** 30;

export type PullOptions = {
  /** The operator's file; see settings.ts. */
  settingsFile: string;
  /** For layers on their way. */
  scratchDir: string;
};

/** The state that an image is: its layers and its environment, as root. Layers that were fetched before are not fetched again. */
export async function pullImage(context: BuildContext, options: PullOptions, reference: string, credential: RegistryCredential | undefined): Promise<BuildState> {
  const { log, signal } = context;
  const settings = readImageSettings(options.settingsFile);
  log(`[base] FROM ${reference}`);
  const { store, version } = await openStore(settings, reference, credential, signal);
  const image = await readImage(store, version);
  const layers = await fetchLayers(context, options, store, image);
  return { layers: layers.flatMap(digest => digest ?? []), env: image.env, user: 'root', workdir: '' };
}

async function openStore(settings: ImageSettings, text: string, credential: RegistryCredential | undefined, signal: AbortSignal): Promise<{ store: ImageStore; version: string }> {
  const origin = originOf(settings, text);
  if (origin.kind === 'file') return openImageFile(origin.path);
  const { reference } = origin;
  const own = settings.registries[reference.registry] ?? {};
  const login = credential ? await loginOf(credential, signal) : own.username === undefined ? undefined : { username: own.username, password: own.password ?? '' };
  const allowedHosts = new Set(Object.entries(settings.registries).flatMap(([host, { private: isPrivate, http }]) => (isPrivate || http ? [host] : [])));
  return { store: openRegistry({ reference, settings: own, login, allowedHosts, signal }), version: reference.version };
}

async function fetchLayers(context: BuildContext, options: PullOptions, store: ImageStore, image: Image): Promise<(string | null)[]> {
  const made: (string | null)[] = image.layers.map(() => null);
  const pending = [...image.layers.entries()];
  const failed = new AbortController();
  const signal = AbortSignal.any([context.signal, failed.signal]);
  const work = async () => {
    for (let next; (next = pending.shift()); ) {
      const [index, layer] = next;
      made[index] = await context.cache.get(['import', layer.diffId], {
        force: false,
        onHit: () => context.log(`CACHED [base] layer ${index + 1}/${image.layers.length}`),
        async make() {
          context.log(`[base] layer ${index + 1}/${image.layers.length}${layer.size > 0 ? `, ${(layer.size / 1e6).toFixed(1)} MB` : ''}`);
          return fetchLayer({ ...context, signal }, options, store, layer);
        },
      });
    }
  };
  const workers = Array.from({ length: layersAtOnce }, () => work().catch(error => {
    failed.abort(error);
    throw error;
  }));
  const outcomes = await Promise.allSettled(workers);
  if (failed.signal.aborted) throw failed.signal.reason;
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  return made;
}

async function fetchLayer(context: BuildContext, options: PullOptions, store: ImageStore, layer: Image['layers'][number]): Promise<string | null> {
  const { node, limits, signal } = context;
  const scratch = await mkdtemp(join(options.scratchDir, 'pull-'));
  try {
    const archive = join(scratch, 'blob');
    await download(await store.blob(layer.digest), archive, layer.digest, signal);
    return await makeLayer(node, { job: { kind: 'import', diffId: layer.diffId }, archive, limits, signal });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function download(source: AsyncIterable<Uint8Array>, path: string, digest: string, signal: AbortSignal): Promise<void> {
  const fd = openSync(path, 'wx', 0o600);
  try {
    const hash = createHash('sha256');
    let length = 0;
    for await (const part of source) {
      signal.throwIfAborted();
      length += part.length;
      if (length > blobBytesMax) throw new AtollError('no_space', `a layer of the image is larger than ${blobBytesMax / 2 ** 30} GiB`);
      hash.update(part);
      for (let done = 0; done < part.length; ) done += writeSync(fd, part, done);
    }
    if (`sha256:${hash.digest('hex')}` !== digest) throw new AtollError('invalid', 'a layer of the image is not what its digest says');
  } finally {
    closeSync(fd);
  }
}
