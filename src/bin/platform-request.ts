import { join } from 'node:path';
import { AtollError, type ErrorCode, messageOf, statusOf } from '../base/error.ts';
import type { PlatformList, PlatformRequest } from '../cli/platform-request.ts';
import { apiKeyFile } from './accounts.ts';
import { readIfThere } from './identity.ts';
import { runningUrl } from './instance.ts';
import type { Settings } from './settings.ts';

/** Speaks to the platform that runs on the data directory, as its first key. */
export function platformRequest(settings: () => Settings): PlatformRequest {
  return async (method, path, body) => {
    const text = await (await ask(settings(), method, path, body)).text();
    return text === '' ? undefined : JSON.parse(text);
  };
}

/** The same as the operator, for what no team may. */
export function operatorRequest(settings: () => Settings): PlatformRequest {
  return async (method, path, body) => {
    const own = settings();
    const token = readIfThere(join(own.dataDir, 'admin-token'));
    const text = await (await ask(own, method, path, body, { 'X-Admin-Token': token ?? '' })).text();
    return text === '' ? undefined : JSON.parse(text);
  };
}

/** Reads a list that comes in pages to its end. */
export function platformList(settings: () => Settings): PlatformList {
  return async path => {
    const items: unknown[] = [];
    for (let token: string | null = null; ; ) {
      const response = await ask(settings(), 'GET', token === null ? path : `${path}?nextToken=${encodeURIComponent(token)}`);
      items.push(...((await response.json()) as unknown[]));
      token = response.headers.get('X-Next-Token');
      if (token === null) return items;
    }
  };
}

async function ask({ dataDir }: Settings, method: string, path: string, body?: unknown, credential?: Record<string, string>): Promise<Response> {
  const url = runningUrl(dataDir);
  const apiKey = readIfThere(apiKeyFile(dataDir));
  if (url === undefined || apiKey === undefined) throw new AtollError('unavailable', `No platform runs on ${dataDir}. Start it with \`npm run up\`, or set ATOLL_DATA_DIR.`);
  const response = await fetch(new URL(path, url), { method, headers: { ...(credential ?? { 'X-API-Key': apiKey }), 'Content-Type': 'application/json' }, ...(body !== undefined && { body: JSON.stringify(body) }) }).catch((error: unknown) => {
    throw new AtollError('unavailable', `The platform at ${url} does not answer: ${messageOf(error)}`);
  });
  if (!response.ok) throw await errorOf(response);
  return response;
}

async function errorOf(response: Response): Promise<AtollError> {
  const code = (Object.keys(statusOf) as ErrorCode[]).find(name => statusOf[name] === response.status) ?? 'internal';
  const body = (await response.json().catch(() => ({}))) as { message?: string };
  return new AtollError(code, body.message ?? `The platform answered ${response.status}.`);
}
