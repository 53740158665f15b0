/** What a new sandbox is to be, as the form has it. */
export type Wish = {
  template: string;
  timeoutSeconds: number;
  metadata: Record<string, string>;
  env: Record<string, string>;
  internet: boolean;
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
    ...(has(wish.metadata) && { metadata: wish.metadata }),
    ...(has(wish.env) && { envVars: wish.env }),
  };
}

/** The same by the SDKs and by curl. */
export function codeOf(wish: Wish, origin: string): Record<string, string> {
  return { JavaScript: javascript(wish), Python: python(wish), curl: curl(wish, origin) };
}

const json = (value: unknown) => JSON.stringify(value);
const lines = (options: (string | false)[]) =>
  options.filter(option => option !== false).map(option => `  ${option},\n`);
const isSet = (record: Record<string, string>) => Object.keys(record).length > 0;

function javascript({ template, timeoutSeconds, metadata, env, internet, pauseAtEnd }: Wish): string {
  const options = lines([
    `timeoutMs: ${timeoutSeconds * 1000}`,
    isSet(metadata) && `metadata: ${json(metadata)}`,
    isSet(env) && `envs: ${json(env)}`,
    !internet && 'allowInternetAccess: false',
    pauseAtEnd && "lifecycle: { onTimeout: 'pause' }",
  ]);
  return (
    `import { Sandbox } from 'e2b';\n\nconst sandbox = await Sandbox.create(${json(template)}, ` +
    `{\n${options.join('')}});\nconsole.log((await sandbox.commands.run('uname -a')).stdout);`
  );
}

function python({ template, timeoutSeconds, metadata, env, internet, pauseAtEnd }: Wish): string {
  const options = lines([
    json(template),
    `timeout=${timeoutSeconds}`,
    isSet(metadata) && `metadata=${json(metadata)}`,
    isSet(env) && `envs=${json(env)}`,
    !internet && 'allow_internet_access=False',
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

/** Reads lines of `name=value`; empty ones are left out. Answers null where a line is none. */
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
