import { existsSync, realpathSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AtollError } from '../../../base/error.ts';
import type { BuildState, RegistryCredential } from '../../../protocol/build.ts';
import type { BuilderQuestion, ImageDescription, RegistryAccess } from '../../../protocol/builder.ts';
import { builderHostsAdded } from '../../network/rules/builder-hosts.ts';
import { nft } from '../../network/rules/nft.ts';
import type { BuildBytes } from '../build-bytes.ts';
import type { Build } from '../build.ts';
import { boundedEnvironment } from '../environment.ts';
import { digestOfFile, makeLayer, type LayerMaker } from '../../layers/make.ts';
import { stacked } from '../../layers/stacked.ts';
import { reachableAddresses } from './reachable.ts';
import { parseImageReference, type ImageReference } from './reference.ts';
import { originOf, readImageSettings, type ImageSettings } from './settings.ts';

/** How many layers are fetched and made at a time. */
const layersAtOnce = 3;
/** Bytes of one layer, as transferred. */
const blobBytesMax = 10 * 2 ** 30;

/** What fetching images needs. */
export type PullOptions = {
  /** The operator's file; see settings.ts. */
  settingsFile: string;
  /** For layers that are being fetched. */
  scratchDir: string;
  /** Authorities that registries are trusted by, in addition to the usual ones, PEM. */
  authorities?: string;
};

const blobBytesMaxOf = (bytes: BuildBytes) => Math.min(blobBytesMax, bytes.left());

/** An image that was found: what it is, and how to fetch one of its blobs into a file that is made for it. */
type Source = {
  image: ImageDescription;
  /** The registry and repository that it comes from, or the file. */
  place: string;
  fetch(digest: string, output: string, signal: AbortSignal): Promise<void>;
};

/**
 * The state that an image stands for: its layers and its environment, as root. Layers that were fetched before are not
 * fetched again.
 */
export async function pullImage(
  build: Build,
  options: PullOptions,
  text: string,
  credential: RegistryCredential | undefined,
): Promise<BuildState> {
  const settings = readImageSettings(options.settingsFile);
  build.log(`[base] FROM ${text}`);
  const origin = originOf(settings, text);
  const sent = origin.kind === 'file' ? undefined : sentTo(build, origin.reference, text, credential);
  const source =
    origin.kind === 'file'
      ? await findInFile(build, origin.path)
      : await findInRegistry(build, options, settings, origin.reference, sent);
  const layers = await fetchLayers(build, options, source, sent ? build.request.teamId : null);
  return {
    layers: stacked(layers.flatMap(digest => digest ?? [])),
    env: boundedEnvironment(source.image.env),
    user: 'root',
    workdir: '',
  };
}

/** The credential of a build, if this is the registry that the build has named: no other registry gets it. */
function sentTo(
  { log }: Pick<Build, 'log'>,
  { registry }: ImageReference,
  text: string,
  credential: RegistryCredential | undefined,
): RegistryCredential | undefined {
  const named = parseImageReference(text).registry;
  if (!credential || registry === named) return credential;
  log(`[base] the credentials are for ${named} and not sent to ${registry}, which the operator has put in its place`);
  return undefined;
}

async function findInFile(
  { builder, signal, bytes }: Pick<Build, 'builder' | 'signal' | 'bytes'>,
  path: string,
): Promise<Source> {
  if (!existsSync(path))
    throw new AtollError('not_found', "the image's file, which the operator's images.json names, is not on this node", {
      fields: { path },
    });
  const shows = { image: realpathSync(path) };
  const { image, version } = await builder.run({ job: { kind: 'file-image' }, shows, signal });
  return {
    image,
    place: path,
    fetch: async (digest, output, until) =>
      void (await builder.run({
        job: { kind: 'file-blob', version, digest, bytesMax: blobBytesMaxOf(bytes) },
        shows,
        output,
        signal: until,
      })),
  };
}

async function findInRegistry(
  { builder, layout, signal, bytes }: Pick<Build, 'builder' | 'layout' | 'signal' | 'bytes'>,
  options: PullOptions,
  settings: ImageSettings,
  reference: ImageReference,
  credential: RegistryCredential | undefined,
): Promise<Source> {
  const allowedHosts = new Set(
    Object.entries(settings.registries).flatMap(([host, { private: isPrivate, http }]) =>
      isPrivate || http ? [host] : [],
    ),
  );
  const reply = async ({ resolve }: BuilderQuestion) => {
    const addresses = await reachableAddresses(resolve, allowedHosts);
    // All other addresses are public, and builders may reach them anyway.
    if (allowedHosts.has(resolve.host)) await nft(builderHostsAdded(layout.installation, addresses, portOf(resolve)));
    return addresses;
  };
  const access = accessOf(settings, options, reference);
  const found = await builder.run({
    job: { kind: 'registry-image', access, version: reference.version, ...(credential && { credential }) },
    reply,
    signal,
  });
  const { login, authorization } = found;
  const asKnown: RegistryAccess = {
    ...access,
    ...(login && { login }),
    ...(authorization !== undefined && { authorization }),
  };
  return {
    image: found.image,
    place: `${access.host}/${access.repository}`,
    fetch: async (digest, output, until) =>
      void (await builder.run({
        job: { kind: 'registry-blob', access: asKnown, digest, bytesMax: blobBytesMaxOf(bytes) },
        reply,
        output,
        signal: until,
      })),
  };
}

function portOf({ host, isSecure }: BuilderQuestion['resolve']): number {
  return isSecure ? Number(new URL(`https://${host}/`).port) || 443 : Number(new URL(`http://${host}/`).port) || 80;
}

function accessOf(
  settings: ImageSettings,
  { authorities }: PullOptions,
  { registry, repository, text }: ImageReference,
): RegistryAccess {
  const { http = false, username, password = '' } = settings.registries[registry] ?? {};
  return {
    // Docker's own registry has another host name than the one in the names of its images.
    host: registry === 'docker.io' ? 'registry-1.docker.io' : registry,
    repository,
    name: text,
    http,
    ...(username !== undefined && { login: { username, password } }),
    ...(authorities !== undefined && { authorities }),
  };
}

/**
 * The layers of an image. `team` is the team whose credentials fetch it; null: everybody may have it. Anybody who
 * knows a digest can name it in an image of their own; that must not give them a layer that took another team's
 * credentials.
 */
async function fetchLayers(
  build: Build,
  options: PullOptions,
  source: Source,
  team: string | null,
): Promise<(string | null)[]> {
  const { layers } = source.image;
  const made: (string | null)[] = layers.map(() => null);
  const pending = [...layers.entries()];
  const failed = new AbortController();
  const signal = AbortSignal.any([build.signal, failed.signal]);
  const work = async () => {
    for (let next; (next = pending.shift());) {
      const [index, layer] = next;
      // Both digests count: the program that reads an archive is not trusted to say truly what it has read.
      made[index] = await build.cache.get(['import for', team, layer.digest, layer.diffId], {
        force: false,
        // Anybody who knows a digest can name it in an image of their own registry, which may send it as slowly as it
        // likes.
        source: source.place,
        signal,
        onHit: () => build.log(`CACHED [base] layer ${index + 1}/${layers.length}`),
        async make() {
          build.log(
            '[base] layer ' +
              `${index + 1}/${layers.length}${layer.size > 0 ? `, ${(layer.size / 1e6).toFixed(1)} MB` : ''}`,
          );
          const made = await fetchLayer(build, signal, options, source, layer);
          if (made !== null) build.bytes.add(build.layers.bytes(made));
          return made;
        },
      });
    }
  };
  const workers = Array.from({ length: layersAtOnce }, () =>
    work().catch(error => {
      failed.abort(error);
      throw error;
    }),
  );
  const outcomes = await Promise.allSettled(workers);
  if (failed.signal.aborted) throw failed.signal.reason;
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  return made;
}

async function fetchLayer(
  build: LayerMaker & Pick<Build, 'builder' | 'limits' | 'bytes'>,
  signal: AbortSignal,
  options: PullOptions,
  source: Source,
  layer: ImageDescription['layers'][number],
): Promise<string | null> {
  const scratch = await mkdtemp(join(options.scratchDir, 'pull-'));
  try {
    const archive = join(scratch, 'blob');
    build.space.require('a layer of the image', layer.size);
    await source.fetch(layer.digest, archive, AbortSignal.any([signal, build.space.signal()]));
    build.bytes.add(statSync(archive).size);
    if ((await digestOfFile(build.builder, archive, signal)) !== layer.digest)
      throw new AtollError('invalid', 'a layer of the image is not what its digest says');
    return await makeLayer(build, {
      job: { kind: 'import', diffId: layer.diffId, limits: build.limits },
      archive,
      signal,
    });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
