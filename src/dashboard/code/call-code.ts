/** A request that an action makes. */
export type Call = { method: string; path: string; body?: unknown; teamID?: string | undefined };

/** The parts of an operation in the API's document that are used here. */
type Operation = {
  operationId: string;
  security?: Record<string, unknown>[];
  parameters?: { name: string; in: string }[];
};

/** The API's document, as far as the generated code needs it. */
export type ApiDocument = { paths: Record<string, Record<string, Operation>> };

/** An operation, with the values in its path. */
type Found = { operation: Operation; values: Record<string, string> };

/** The credential for an operation, in each language. */
type Credential = { header: string; js: string; python: string; ofTeam: boolean };

/** Finds the operation of a request: among matching paths, the one with the fewest members. */
export function operationOf({ paths }: ApiDocument, { method, path }: Call): Found | null {
  const parts = path.split('/');
  const found = Object.entries(paths).flatMap(([template, methods]) => {
    const operation = methods[method.toLowerCase()];
    const names = template.split('/');
    if (!operation || names.length !== parts.length) return [];
    const values: Record<string, string> = {};
    for (const [at, name] of names.entries()) {
      const part = parts[at] ?? '';
      if (name.startsWith('{')) values[name.slice(1, -1)] = decodeURIComponent(part);
      else if (name !== part) return [];
    }
    return [{ operation, values }];
  });
  return found.toSorted((a, b) => Object.keys(a.values).length - Object.keys(b.values).length)[0] ?? null;
}

/** The names of the credential in programs, for the first one that an operation accepts. */
function credentialOf({ security = [] }: Operation): Credential | null {
  const with_ = (scheme: string) => security.find(one => scheme in one);
  const key = with_('apiKey');
  if (key) return { header: 'X-API-Key: $ATOLL_API_KEY', js: '', python: '', ofTeam: false };
  const token = with_('accessToken');
  if (token)
    return {
      header: 'Authorization: Bearer $ATOLL_ACCESS_TOKEN',
      js: 'accessToken: process.env.ATOLL_ACCESS_TOKEN',
      python: 'access_token=os.environ["ATOLL_ACCESS_TOKEN"]',
      ofTeam: 'teamId' in token,
    };
  const admin = with_('adminToken');
  if (admin)
    return {
      header: 'X-Admin-Token: $ATOLL_ADMIN_TOKEN',
      js: 'adminToken: process.env.ATOLL_ADMIN_TOKEN',
      python: 'admin_token=os.environ["ATOLL_ADMIN_TOKEN"]',
      ofTeam: 'teamId' in admin,
    };
  return null;
}

const json = (value: unknown) => JSON.stringify(value);

/** A JSON value as written in Python. */
export function pythonOf(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(pythonOf).join(', ')}]`;
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .map(([name, member]) => `${json(name)}: ${pythonOf(member)}`)
      .join(', ')}}`;
  return json(value);
}

/** `sandboxID` becomes `sandbox_id`: the names that the Python client makes of the document's. */
const snake = (name: string) =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .toLowerCase();

/** A text in single quotes for a shell, whatever it contains. */
export const shellText = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const isPlain = (name: string) => /^[A-Za-z_$][\w$]*$/.test(name);

function javascript(found: Found, call: Call, origin: string, who: Credential | null): string {
  const members = [
    ...Object.entries(found.values).map(([name, value]) => `${isPlain(name) ? name : json(name)}: ${json(value)}`),
    ...(call.body === undefined ? [] : [`body: ${json(call.body)}`]),
  ];
  const options = [`url: ${json(origin)}`, who?.js, who?.ofTeam && call.teamID && `teamId: ${json(call.teamID)}`];
  return (
    `import { atoll } from '@atoll/client';\n\nconst platform = atoll({ ${options.filter(Boolean).join(', ')} });\n` +
    `await platform.${found.operation.operationId}(${members.length > 0 ? `{ ${members.join(', ')} }` : ''});`
  );
}

function python(found: Found, call: Call, origin: string, who: Credential | null): string {
  const given = [
    ...Object.values(found.values).map(json),
    ...(call.body === undefined ? [] : [`body=${pythonOf(call.body)}`]),
  ];
  const options = [json(origin), who?.python, who?.ofTeam && call.teamID && `team_id=${json(call.teamID)}`];
  return (
    `${who?.python ? 'import os\n' : ''}from atoll_client import Atoll\n\nplatform = Atoll(` +
    `${options.filter(Boolean).join(', ')})\nplatform.${snake(found.operation.operationId)}(${given.join(', ')})`
  );
}

function curl(call: Call, origin: string, who: Credential | null): string {
  const lines = [
    `curl -X ${call.method} ${shellText(origin + call.path)}`,
    ...(who ? [`-H "${who.header}"`] : []),
    ...(who?.ofTeam && call.teamID ? [`-H ${shellText(`X-Team-ID: ${call.teamID}`)}`] : []),
    ...(call.body === undefined ? [] : [`-H 'Content-Type: application/json'`, `-d ${shellText(json(call.body))}`]),
  ];
  return lines.join(' \\\n  ');
}

/**
 * Programs that do what an action does, by language. For what only sessions may do, there is just curl's, to be read.
 */
export function codeOfCall(document: ApiDocument, call: Call, origin: string): Record<string, string> {
  const found = operationOf(document, call);
  const who = found && credentialOf(found.operation);
  return {
    ...(found && { JavaScript: javascript(found, call, origin, who), Python: python(found, call, origin, who) }),
    curl: curl(call, origin, who),
  };
}
