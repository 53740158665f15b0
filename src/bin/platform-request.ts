import { join } from 'node:path';
import { AtollError, type ErrorCode, messageOf, statusOf } from '../base/error.ts';
import type { PlatformList, PlatformRequest } from '../cli/platform-request.ts';
import { firstTeam } from '../api/app/first-team.ts';
import { readIfThere } from './identity.ts';
import { runningUrl } from './instance.ts';
import type { Settings } from './settings.ts';

/**
 * Speaks to the platform that runs on the data directory, for the installation's first team. It does so as the operator, whose
 * token only root can read: the team's keys are the team's, and may all be revoked.
 */
export function platformRequest(settings: () => Settings): PlatformRequest {
  const credential = firstTeamCredential(settings);
  return async (method, path, body) => jsonOf(await ask(settings(), await credential(), method, path, body));
}

/** The same as the operator, for what no team may. */
export function operatorRequest(settings: () => Settings): PlatformRequest {
  return async (method, path, body) => jsonOf(await ask(settings(), operatorCredential(settings()), method, path, body));
}

/** Reads a list that comes in pages to its end. */
export function platformList(settings: () => Settings): PlatformList {
  const credential = firstTeamCredential(settings);
  return async path => {
    const items: unknown[] = [];
    for (let token: string | null = null; ; ) {
      const response = await ask(settings(), await credential(), 'GET', token === null ? path : `${path}?nextToken=${encodeURIComponent(token)}`);
      items.push(...((await response.json()) as unknown[]));
      token = response.headers.get('X-Next-Token');
      if (token === null) return items;
    }
  };
}

type Credential = Record<string, string>;

function operatorCredential({ dataDir }: Settings): Credential {
  const token = readIfThere(join(dataDir, 'admin-token'));
  if (token === undefined) throw noPlatform(dataDir);
  return { 'X-Admin-Token': token };
}

/** The operator, for the installation's first team. The platform is asked once which one that is. */
function firstTeamCredential(settings: () => Settings): () => Promise<Credential> {
  let known: Promise<Credential> | undefined;
  const find = async () => {
    const operator = operatorCredential(settings());
    const teams = (await (await ask(settings(), operator, 'GET', '/admin/teams')).json()) as { teamID: string; slug: string }[];
    const team = teams.find(({ slug }) => slug === firstTeam.slug);
    if (!team) throw new AtollError('not_found', `The team ${firstTeam.slug} is not there any more; \`atoll team list\` lists the teams.`);
    return { ...operator, 'X-Team-ID': team.teamID };
  };
  return () => (known ??= find());
}

async function jsonOf(response: Response): Promise<unknown> {
  const text = await response.text();
  return text === '' ? undefined : JSON.parse(text);
}

async function ask({ dataDir }: Settings, credential: Credential, method: string, path: string, body?: unknown): Promise<Response> {
  const url = runningUrl(dataDir);
  if (url === undefined) throw noPlatform(dataDir);
  const headers = { ...credential, 'Content-Type': 'application/json' };
  const response = await fetch(new URL(path, url), { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }).catch((error: unknown) => {
    throw new AtollError('unavailable', `The platform at ${url} does not answer: ${messageOf(error)}`);
  });
  if (!response.ok) throw await errorOf(response);
  return response;
}

function noPlatform(dataDir: string): AtollError {
  return new AtollError('unavailable', `No platform runs on ${dataDir}. Start it with \`npm run up\`, or set ATOLL_DATA_DIR.`);
}

async function errorOf(response: Response): Promise<AtollError> {
  const code = (Object.keys(statusOf) as ErrorCode[]).find(name => statusOf[name] === response.status) ?? 'internal';
  const body = (await response.json().catch(() => ({}))) as { message?: string };
  return new AtollError(code, body.message ?? `The platform answered ${response.status}.`);
}
