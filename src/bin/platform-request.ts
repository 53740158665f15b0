import { join } from 'node:path';
import { AtollError, type ErrorCode, messageOf, statusOf } from '../base/error.ts';
import type { PlatformFollow, PlatformList, PlatformRequest } from '../cli/connection/platform-request.ts';
import { asksControl } from '../api/installation/data-directory.ts';
import { firstTeam } from '../api/team/rules/first-team.ts';
import { misuse } from '../cli/terminal/arguments.ts';
import { parseJson } from '../base/json-text.ts';
import { followed } from '../base/followed.ts';
import { readIfThere } from '../base/small-file.ts';
import { runningUrl } from './platform/instance.ts';
import type { Connection } from '../cli/connection/connection.ts';
import type { Settings } from './settings/settings.ts';
import { advice } from '../base/process/set-up.ts';

/** Where requests go, and as whom. */
export type Target = () => Promise<{ url: string; credential: Credential }>;

/**
 * The platform that runs on the data directory, on behalf of the installation's first team. It uses the operator's
 * token, which only root can read, because the team may revoke all of its own keys.
 */
export function ownPlatform(settings: () => Settings): Target {
  const credential = firstTeamCredential(settings);
  return async () => ({ url: urlOf(settings()), credential: await credential() });
}

/** The installation that a user signed in to. */
export function signedInPlatform({ url, apiKey }: Connection): Target {
  return async () => ({ url, credential: { 'X-API-Key': apiKey } });
}

/** Calls the REST API of a platform. */
export function requestTo(target: Target): PlatformRequest {
  return async (method, path, body, onHeaders) => {
    const response = await ask(await target(), method, path, body);
    onHeaders?.(response.headers);
    return jsonOf(response);
  };
}

/** The same as the operator of the platform that runs on the data directory, for calls that no team may make. */
export function operatorRequest(settings: () => Settings): PlatformRequest {
  return requestTo(async () => ({ url: urlOf(settings()), credential: operatorCredential(settings()) }));
}

/** Reads a paged list to its end. */
export function listOf(target: Target): PlatformList {
  return async path => {
    const items: unknown[] = [];
    for (let token: string | null = null; ;) {
      const page: string =
        token === null ? path : `${path}${path.includes('?') ? '&' : '?'}nextToken=${encodeURIComponent(token)}`;
      const response = await ask(await target(), 'GET', page);
      const listed = await jsonOf(response);
      if (!Array.isArray(listed)) throw noAtoll(response.url);
      items.push(...(listed as unknown[]));
      token = response.headers.get('X-Next-Token');
      if (token === null) return items;
    }
  };
}

/** Follows a stream of a platform; waits for one that is restarting. */
export function followAt(target: Target): PlatformFollow {
  return async function* follow(path, query) {
    let wasOpen = false;
    const open = async (after: string | undefined) => {
      const params = new URLSearchParams({ ...query, ...(after !== undefined && { after }) });
      const response = await ask(await target(), 'GET', `${path}?${params}`);
      if (!response.headers.get('content-type')?.startsWith('text/event-stream')) throw noAtoll(response.url);
      wasOpen = true;
      return response;
    };
    const onFailure = (error: unknown) => {
      if (error instanceof AtollError && !(wasOpen && error.code === 'unavailable')) throw error;
    };
    // A command ends with its process.
    const { signal } = new AbortController();
    for await (const { event, data } of followed({ open, signal, onFailure }))
      if (event === 'message') yield JSON.parse(data);
  };
}

type Credential = Record<string, string>;

function operatorCredential({ dataDir }: Settings): Credential {
  const token = readIfThere(join(dataDir, 'admin-token'));
  if (token !== undefined) return { 'X-Admin-Token': token };
  if (runningUrl(dataDir) === undefined) throw noPlatform(dataDir);
  throw new AtollError(
    'unavailable',
    `${join(dataDir, 'admin-token')} is missing: put it back, or start the platform again, which makes another one.`,
  );
}

/** The operator, on behalf of the installation's first team. The platform is asked once which team that is. */
function firstTeamCredential(settings: () => Settings): () => Promise<Credential> {
  let known: Promise<Credential> | undefined;
  const find = async () => {
    const operator = operatorCredential(settings());
    const asOperator = { url: urlOf(settings()), credential: operator };
    const teams = (await jsonOf(await ask(asOperator, 'GET', '/admin/teams'))) as { teamID: string; slug: string }[];
    const team = teams.find(({ slug }) => slug === firstTeam.slug);
    if (!team)
      throw new AtollError(
        'not_found',
        `The team ${firstTeam.slug} is not there any more; \`atoll team list\` lists the teams.`,
      );
    return { ...operator, 'X-Team-ID': team.teamID };
  };
  return () => (known ??= find());
}

async function jsonOf(response: Response): Promise<unknown> {
  const text = await response.text();
  if (text === '') return undefined;
  const value = parseJson(text);
  if (value === undefined) throw noAtoll(response.url);
  return value;
}

/** For example a proxy's sign-in page, or another server at the URL of the login. */
const noAtoll = (url: string) =>
  new AtollError(
    'unavailable',
    `What answers at ${URL.parse(url)?.origin ?? url} is no Atoll, or is behind something that answers in its place: ` +
      'the answer is not what the API says.',
  );

function urlOf({ dataDir }: Settings): string {
  const url = runningUrl(dataDir);
  if (url === undefined) throw noPlatform(dataDir);
  return url;
}

async function ask(
  { url, credential }: Awaited<ReturnType<Target>>,
  method: string,
  path: string,
  body?: unknown,
): Promise<Response> {
  // As a part of a path, either of these would lead to another one.
  const way = path
    .split('?')[0]
    ?.split('/')
    .find(part => part === '.' || part === '..');
  if (way !== undefined) throw misuse(`"${way}" is neither an ID nor a name`);
  const headers = { ...credential, 'Content-Type': 'application/json' };
  const response = await fetch(new URL(path, url), {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch((error: unknown) => {
    throw new AtollError('unavailable', `The platform at ${url} does not answer: ${messageOf(error)}`);
  });
  if (!response.ok) throw await errorOf(response);
  return response;
}

function noPlatform(dataDir: string): AtollError {
  return new AtollError(
    'unavailable',
    asksControl(dataDir) ??
      `No platform runs on ${dataDir}: ${advice.start}, set ATOLL_DATA_DIR, or \`atoll login\` for sandboxes ` +
        'elsewhere.',
  );
}

async function errorOf(response: Response): Promise<AtollError> {
  const code = (Object.keys(statusOf) as ErrorCode[]).find(name => statusOf[name] === response.status) ?? 'internal';
  // A proxy in front may send an empty answer, which is read as null.
  const body = (await response.json().catch(() => null)) as { message?: string } | null;
  return new AtollError(code, body?.message ?? `The platform answered ${response.status}.`);
}
