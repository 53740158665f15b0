import { AtollError } from '../../base/error.ts';
import { readBounded } from '../../base/pinned-fetch.ts';
import type { Login, RegistryAccess } from '../../protocol/builder.ts';
import type { Conversation } from '../conversation.ts';
import { readChallenge } from './challenge.ts';
import { guardedFetch, readJson } from './guarded-fetch.ts';

/** A source of images: a registry, or a file with the same content. */
export type ImageStore = {
  /** A manifest by tag or digest. Errors: `not_found`. */
  manifest(version: string): Promise<Uint8Array>;
  /** The content of a blob. The caller must check its digest. */
  blob(digest: string): Promise<AsyncIterable<Uint8Array>>;
};

const manifestBytesMax = 4 << 20;
/** Bytes of a token server's answer. */
const tokenBytesMax = 64 << 10;
const tokenCharactersMax = 16_384;
const acceptedManifests = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');

/**
 * A repository of a registry through the OCI distribution protocol (version 2 of Docker's), anonymous or with a login.
 * `authorization`: the header that it last accepted.
 */
export function openRegistry(
  access: RegistryAccess,
  login: Login | undefined,
  conversation: Conversation,
): ImageStore & { authorization(): string | undefined } {
  const { host, repository, http } = access;
  const base = `${http ? 'http' : 'https'}://${host}/v2/${repository}`;
  const trust = trustOf(access);
  let { authorization } = access;

  const request = async (path: string, accept: string): Promise<Response> => {
    const send = () =>
      guardedFetch(
        `${base}/${path}`,
        { headers: { accept, ...(authorization !== undefined && { authorization }) }, ...trust },
        conversation,
      );
    let response = await send();
    if (response.status === 401) {
      await response.body?.cancel();
      authorization = await authorize(access, login, response.headers.get('www-authenticate') ?? '', conversation);
      response = await send();
    }
    if (response.ok) return response;
    await response.body?.cancel();
    throw refusal(access, login, response.status);
  };

  return {
    authorization: () => authorization,
    manifest: async version =>
      readBounded(
        await request(`manifests/${version}`, acceptedManifests),
        manifestBytesMax,
        'the manifest of the image',
      ),
    async blob(digest) {
      const { body } = await request(`blobs/${digest}`, '*/*');
      if (!body) throw new AtollError('unavailable', `${host} sent an empty blob`);
      return body;
    },
  };
}

const trustOf = ({ authorities }: RegistryAccess) => (authorities === undefined ? {} : { authorities });

/** The meaning of a registry's status for an image. */
function refusal({ host, name }: RegistryAccess, login: Login | undefined, status: number): AtollError {
  if (status === 401 || status === 403)
    return new AtollError(
      'forbidden',
      `${name} may not be read${login ? ' with these credentials' : ': give credentials for the registry'}`,
    );
  if (status === 404) return new AtollError('not_found', `${name} was not found in its registry`);
  if (status === 429)
    return new AtollError(
      'unavailable',
      `${host} limits how often images are fetched; try again later, or give credentials`,
    );
  return new AtollError('unavailable', `${host} answered ${status} for ${name}`);
}

/**
 * The header that a registry's challenge asks for: a token (RFC 6750) as Docker's registries issue them, or the login
 * itself (RFC 7617). Fails with `forbidden` if neither is available.
 */
async function authorize(
  access: RegistryAccess,
  login: Login | undefined,
  challenge: string,
  conversation: Conversation,
): Promise<string> {
  const { host, repository, name } = access;
  const basic = login && `Basic ${Buffer.from(`${login.username}:${login.password}`).toString('base64')}`;
  const { scheme, parameters } = readChallenge(challenge);
  if (scheme !== 'bearer') {
    if (basic === undefined)
      throw new AtollError('forbidden', `${name} may not be read without credentials for the registry`);
    return basic;
  }
  const realm = URL.parse(parameters.get('realm') ?? '');
  if (!realm) throw new AtollError('unavailable', `${host} does not say where its tokens are given out`);
  realm.searchParams.set('service', parameters.get('service') ?? '');
  realm.searchParams.set('scope', parameters.get('scope') ?? `repository:${repository}:pull`);
  const headers: Record<string, string> = basic === undefined ? {} : { authorization: basic };
  const response = await guardedFetch(realm.href, { headers, ...trustOf(access) }, conversation);
  const answer = (await readJson(response, tokenBytesMax, realm.host)) as
    | { token?: unknown; access_token?: unknown }
    | undefined;
  const token = answer?.token ?? answer?.access_token;
  if (!response.ok || typeof token !== 'string' || token.length > tokenCharactersMax)
    throw new AtollError('forbidden', `${realm.host} gives no access to ${name}: status ${response.status}`);
  return `Bearer ${token}`;
}
