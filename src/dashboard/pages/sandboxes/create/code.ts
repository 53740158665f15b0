/** Request headers per host, by host and by name. */
export type HeaderRules = Record<string, Record<string, string>>;

/** The wanted sandbox, as in the form. */
export type Wish = {
  template: string;
  timeoutSeconds: number;
  metadata: Record<string, string>;
  env: Record<string, string>;
  internet: boolean;
  /** Addresses, blocks and domains that it may and may not reach. */
  allow: string[];
  deny: string[];
  rules: HeaderRules;
  /** Names of volumes by mount path. */
  volumes: Record<string, string>;
  pauseAtEnd: boolean;
};

/** The body of the request that creates it. */
export function bodyOf(wish: Wish): Record<string, unknown> {
  const has = (record: Record<string, string>) => Object.keys(record).length > 0;
  return {
    templateID: wish.template,
    timeout: wish.timeoutSeconds,
    secure: true,
    ...(wish.pauseAtEnd && { autoPause: true }),
    ...(!wish.internet && { allow_internet_access: false }),
    ...(hasNetwork(wish) && { network: networkOf(wish, 'allowOut', 'denyOut') }),
    ...(has(wish.volumes) && { volumeMounts: Object.entries(wish.volumes).map(([path, name]) => ({ name, path })) }),
    ...(has(wish.metadata) && { metadata: wish.metadata }),
    ...(has(wish.env) && { envVars: wish.env }),
  };
}

const hasNetwork = ({ allow, deny, rules }: Wish) => allow.length + deny.length + Object.keys(rules).length > 0;

/** The non-empty parts of a policy, under each language's own names. */
function networkOf({ allow, deny, rules }: Wish, allowName: string, denyName: string): Record<string, unknown> {
  const ruled = Object.entries(rules).map(([host, headers]) => [host, [{ transform: { headers } }]]);
  return {
    ...(allow.length > 0 && { [allowName]: allow }),
    ...(deny.length > 0 && { [denyName]: deny }),
    ...(ruled.length > 0 && { rules: Object.fromEntries(ruled) }),
  };
}

/** The form's initial state. */
export const plainWish: Wish = {
  template: 'base',
  timeoutSeconds: 300,
  metadata: {},
  env: {},
  internet: true,
  allow: [],
  deny: [],
  rules: {},
  volumes: {},
  pauseAtEnd: false,
};

/** The same with the SDKs and curl. */
export function codeOf(wish: Wish, origin: string): Record<string, string> {
  return { JavaScript: javascript(wish), Python: python(wish), curl: curl(wish, origin) };
}

const json = (value: unknown) => JSON.stringify(value);
const lines = (options: (string | false)[]) =>
  options.filter(option => option !== false).map(option => `  ${option},\n`);
const isSet = (record: Record<string, string>) => Object.keys(record).length > 0;

function javascript(wish: Wish): string {
  const { template, timeoutSeconds, metadata, env, internet, volumes, pauseAtEnd } = wish;
  const options = lines([
    `timeoutMs: ${timeoutSeconds * 1000}`,
    isSet(metadata) && `metadata: ${json(metadata)}`,
    isSet(env) && `envs: ${json(env)}`,
    !internet && 'allowInternetAccess: false',
    hasNetwork(wish) && `network: ${json(networkOf(wish, 'allowOut', 'denyOut'))}`,
    isSet(volumes) && `volumeMounts: ${json(volumes)}`,
    pauseAtEnd && "lifecycle: { onTimeout: 'pause' }",
  ]);
  return (
    `import { Sandbox } from 'e2b';\n\nconst sandbox = await Sandbox.create(${json(template)}, ` +
    `{\n${options.join('')}});\nconsole.log((await sandbox.commands.run('uname -a')).stdout);`
  );
}

function python(wish: Wish): string {
  const { template, timeoutSeconds, metadata, env, internet, volumes, pauseAtEnd } = wish;
  const options = lines([
    json(template),
    `timeout=${timeoutSeconds}`,
    isSet(metadata) && `metadata=${json(metadata)}`,
    isSet(env) && `envs=${json(env)}`,
    !internet && 'allow_internet_access=False',
    hasNetwork(wish) && `network=${json(networkOf(wish, 'allow_out', 'deny_out'))}`,
    isSet(volumes) && `volume_mounts=${json(volumes)}`,
    pauseAtEnd && 'lifecycle={"on_timeout": "pause"}',
  ]);
  return (
    `from e2b import Sandbox\n\nsandbox = ` +
    `Sandbox.create(\n${options.join('')})\nprint(sandbox.commands.run("uname -a").stdout)`
  );
}

function curl(wish: Wish, origin: string): string {
  const body = json(bodyOf(wish)).replaceAll("'", String.raw`'\''`);
  return (
    `curl -X POST ${origin}/v2/sandboxes \\\n  -H "X-API-Key: $E2B_API_KEY" \\\n  -H 'Content-Type: ` +
    `application/json' \\\n  -d '${body}'`
  );
}

/** Reads lines of `name=value`; skips empty ones. Answers null if a line has another form. */
export function parsePairs(text: string): Record<string, string> | null {
  const pairs: Record<string, string> = {};
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const equals = line.indexOf('=');
    if (equals <= 0) return null;
    pairs[line.slice(0, equals).trim()] = line.slice(equals + 1);
  }
  return pairs;
}

/** The non-empty lines. */
export const parseLines = (text: string): string[] =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '');
