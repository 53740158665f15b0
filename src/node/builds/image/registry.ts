import { AtollError } from '../../../base/error.ts';
import type { Login } from './credential.ts';
import { readChallenge } from './challenge.ts';
import { guardedFetch, readBounded, readJson } from './guarded-fetch.ts';
import type { ImageReference } from './reference.ts';
import type { RegistrySettings } from './settings.ts';

/** Where images are fetched from: a registry, or a file that holds the same things. */
export type ImageStore = {
  /** A manifest by tag or digest, with its media type. Errors: `not_found`. */
  manifest(version: string): Promise<{ bytes: Uint8Array; mediaType: string }>;
  /** The content of a blob. Its digest is for the caller to check. */
  blob(digest: string): Promise<AsyncIterable<Uint8Array>>;
};

const manifestBytesMax = 4 << 20;
/** Of what a token server answers. */
const tokenBytesMax = 64 << 10;
const acceptedManifests = [
  'application/vnd.oci.image.index.v1+json', 'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json', 'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

export type RegistryOptions = {
  reference: ImageReference;
  settings: RegistrySettings;
  login: Login | undefined;
  /** Hosts that may have a private address, as `host:port`. */
  allowedHosts: ReadonlySet<string>;
  signal: AbortSignal;
};

/** A repository of a registry by the OCI distribution protocol (version 2 of Docker's), anonymous or with a login. */
export function openRegistry({ reference, settings, login, allowedHosts, signal }: RegistryOptions): ImageStore {
  // Docker's own registry is served under another name than its images have.
  const host = reference.registry === 'docker.io' ? 'registry-1.docker.io' : reference.registry;
  const base = `${settings.http ? 'http' : 'https'}://${host}/v2/${reference.repository}`;
  let authorization: string | undefined;

  const request = async (path: string, accept: string): Promise<Response> => {
    const send = () => guardedFetch(`${base}/${path}`, { headers: { accept, ...(authorization !== undefined && { authorization }) }, allowedHosts, signal });
    let response = await send();
    if (response.status === 401) {
      await response.body?.cancel();
      authorization = await authorize(response.headers.get('www-authenticate') ?? '');
      response = await send();
    }
    if (response.ok) return response;
    await response.body?.cancel();
    if (response.status === 401 || response.status === 403) {
      throw new AtollError('forbidden', `${reference.text} may not be read${login ? ' with these credentials' : ': give credentials for the registry'}`);
    }
    if (response.status === 404) throw new AtollError('not_found', `${reference.text} was not found in its registry`);
    if (response.status === 429) throw new AtollError('unavailable', `${host} limits how often images are fetched; try again later, or give credentials`);
    throw new AtollError('unavailable', `${host} answered ${response.status} for ${reference.text}`);
  };

  /** RFC 6750 tokens as Docker's registries give them out, or the login itself (RFC 7617). */
  const authorize = async (challenge: string): Promise<string> => {
    const basic = login && `Basic ${Buffer.from(`${login.username}:${login.password}`).toString('base64')}`;
    const { scheme, parameters } = readChallenge(challenge);
    if (scheme !== 'bearer') {
      if (basic === undefined) throw new AtollError('forbidden', `${reference.text} may not be read without credentials for the registry`);
      return basic;
    }
    const realm = URL.parse(parameters.get('realm') ?? '');
    if (!realm) throw new AtollError('unavailable', `${host} does not say where its tokens are given out`);
    for (const name of ['service', 'scope']) realm.searchParams.set(name, parameters.get(name) ?? (name === 'scope' ? `repository:${reference.repository}:pull` : ''));
    const response = await guardedFetch(realm.href, { headers: basic === undefined ? {} : { authorization: basic }, allowedHosts, signal });
    const answer = (await readJson(response, tokenBytesMax)) as { token?: unknown; access_token?: unknown } | undefined;
    const token = answer?.token ?? answer?.access_token;
    if (!response.ok || typeof token !== 'string') throw new AtollError('forbidden', `${realm.host} gives no access to ${reference.text}: status ${response.status}`);
    return `Bearer ${token}`;
  };

  return {
    async manifest(version) {
      const response = await request(`manifests/${version}`, acceptedManifests);
      const bytes = await readBounded(response, manifestBytesMax, 'the manifest of the image');
      return { bytes, mediaType: (response.headers.get('content-type') ?? '').split(';')[0]?.trim() ?? '' };
    },
    async blob(digest) {
      const { body } = await request(`blobs/${digest}`, '*/*');
      if (!body) throw new AtollError('unavailable', `${host} sent an empty blob`);
      return body;
    },
  };
}
