import { AtollError } from '../../base/error.ts';
import { readBounded } from '../../base/pinned-fetch.ts';
import type { Login, RegistryAccess } from '../../protocol/builder.ts';
import type { Conversation } from '../conversation.ts';
import { readChallenge } from './challenge.ts';
import { guardedFetch, readJson } from './guarded-fetch.ts';

/** Where images are read from: a registry, or a file that holds the same things. */
export type ImageStore = {
  /** A manifest by tag or digest. Errors: `not_found`. */
  manifest(version: string): Promise<Uint8Array>;
  /** The content of a blob. Its digest is for the caller to check. */
  blob(digest: string): Promise<AsyncIterable<Uint8Array>>;
};

const manifestBytesMax = 4 << 20;
/** Of what a token server answers. */
const tokenBytesMax = 64 << 10;
const tokenCharactersMax = 16_384;
const acceptedManifests = [
  'application/vnd.oci.image.index.v1+json', 'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json', 'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

/** A repository of a registry by the OCI distribution protocol (version 2 of Docker's), anonymous or with a login. `authorization`: what it took last. */
export function openRegistry(access: RegistryAccess, login: Login | undefined, conversation: Conversation): ImageStore & { authorization(): string | undefined } {
  const { host, repository, name, http, authorities } = access;
  const base = `${http ? 'http' : 'https'}://${host}/v2/${repository}`;
  const trust = authorities === undefined ? {} : { authorities };
  let { authorization } = access;

  const request = async (path: string, accept: string): Promise<Response> => {
    const send = () => guardedFetch(`${base}/${path}`, { headers: { accept, ...(authorization !== undefined && { authorization }) }, ...trust }, conversation);
    let response = await send();
    if (response.status === 401) {
      await response.body?.cancel();
      authorization = await authorize(response.headers.get('www-authenticate') ?? '');
      response = await send();
    }
    if (response.ok) return response;
    await response.body?.cancel();
    if (response.status === 401 || response.status === 403) {
      throw new AtollError('forbidden', `${name} may not be read${login ? ' with these credentials' : ': give credentials for the registry'}`);
    }
    if (response.status === 404) throw new AtollError('not_found', `${name} was not found in its registry`);
    if (response.status === 429) throw new AtollError('unavailable', `${host} limits how often images are fetched; try again later, or give credentials`);
    throw new AtollError('unavailable', `${host} answered ${response.status} for ${name}`);
  };

  /** RFC 6750 tokens as Docker's registries give them out, or the login itself (RFC 7617). */
  const authorize = async (challenge: string): Promise<string> => {
    const basic = login && `Basic ${Buffer.from(`${login.username}:${login.password}`).toString('base64')}`;
    const { scheme, parameters } = readChallenge(challenge);
    if (scheme !== 'bearer') {
      if (basic === undefined) throw new AtollError('forbidden', `${name} may not be read without credentials for the registry`);
      return basic;
    }
    const realm = URL.parse(parameters.get('realm') ?? '');
    if (!realm) throw new AtollError('unavailable', `${host} does not say where its tokens are given out`);
    realm.searchParams.set('service', parameters.get('service') ?? '');
    realm.searchParams.set('scope', parameters.get('scope') ?? `repository:${repository}:pull`);
    const response = await guardedFetch(realm.href, { headers: basic === undefined ? {} : { authorization: basic }, ...trust }, conversation);
    const answer = (await readJson(response, tokenBytesMax, realm.host)) as { token?: unknown; access_token?: unknown } | undefined;
    const token = answer?.token ?? answer?.access_token;
    if (!response.ok || typeof token !== 'string' || token.length > tokenCharactersMax) throw new AtollError('forbidden', `${realm.host} gives no access to ${name}: status ${response.status}`);
    return `Bearer ${token}`;
  };

  return {
    authorization: () => authorization,
    manifest: async version => readBounded(await request(`manifests/${version}`, acceptedManifests), manifestBytesMax, 'the manifest of the image'),
    async blob(digest) {
      const { body } = await request(`blobs/${digest}`, '*/*');
      if (!body) throw new AtollError('unavailable', `${host} sent an empty blob`);
      return body;
    },
  };
}
