/** What a person needs to know to use a platform that has just started. */
export type Welcome = {
  /** Origin of the one port, e.g. `http://localhost:3000`. */
  url: string;
  /**
   * Present if there is a TLS port. `authorityFile`: must be trusted unless a public authority has signed. `domain`: as
   * `domain` below, for TLS.
   */
  tls?: { url: string; authorityFile: string | null; domain: string } | undefined;
  apiKey: string;
  /** File with the key, for the next start. */
  apiKeyFile: string;
  /** Domain with port, under which sandboxes have hosts of their own. */
  domain: string;
  dataDir: string;
  /** Templates that are being built in the background. */
  building: string[];
  /** A link that signs in at the dashboard, once; null if there is no dashboard. */
  dashboard: string | null;
};

/**
 * Environment variables for clients on this machine: their calls work without a name server, because they all go to the
 * one address. URLs that contain a sandbox's own host are for TLS (`https://PORT-ID.DOMAIN`), so the domain is that of
 * TLS if there is one whose certificate clients accept for such hosts.
 */
export function localVariables({ url, apiKey, domain, tls }: Pick<Welcome, 'url' | 'apiKey' | 'domain' | 'tls'>) {
  const own = tls && hasHosts(tls.domain) ? tls.domain : domain;
  return { E2B_API_KEY: apiKey, E2B_API_URL: url, E2B_SANDBOX_URL: url, E2B_VOLUME_API_URL: url, E2B_DOMAIN: own };
}

/** Clients reject a wildcard under a single label, such as `*.localhost`. */
const hasHosts = (domain: string) => domain.includes('.');

/** The same when names lead here and TLS is used: sandboxes are reached by their own hosts. */
function publicVariables({ apiKey, tls }: { apiKey: string; tls: { url: string; domain: string } }) {
  return { E2B_API_KEY: apiKey, E2B_API_URL: tls.url, E2B_VOLUME_API_URL: tls.url, E2B_DOMAIN: tls.domain };
}

function exportsOf(variables: Record<string, string>): string {
  return Object.entries(variables)
    .map(([name, value]) => `  export ${name}=${value}\n`)
    .join('');
}

/** Names that lead only to this machine. */
const isLocalName = (domain: string) => /(?:^|\.)localhost(?::\d+)?$/.test(domain);

const buildingLine = (names: string[]) =>
  names.length === 0
    ? ''
    : `  building  ${names.join(', ')} in the background, a minute or two; creates from it wait, ` +
      '`atoll template list` shows it\n';

const trustLine = (authorityFile: string | null | undefined) =>
  authorityFile ? `  trust     export NODE_EXTRA_CA_CERTS=${authorityFile} SSL_CERT_FILE=${authorityFile}\n` : '';

/** The address, the key, and lines that work when pasted unchanged. */
export function welcomeText(about: Welcome): string {
  const { url, tls, apiKey, apiKeyFile, domain, dataDir, building, dashboard } = about;
  return `
Atoll is ready at ${url}${tls ? ` and ${tls.url}` : ''}
${
  dashboard ? `  dashboard ${dashboard}   (signs in once, within 15 minutes; \`atoll dashboard\` prints another)\n` : ''
}  API key   ${apiKey}   (kept in ${apiKeyFile}, for root only)
  data      ${dataDir}
  previews  http://PORT-SANDBOX_ID.${domain}${tls ? ` and https://PORT-SANDBOX_ID.${tls.domain}` : ''}
${buildingLine(building)}${trustLine(tls?.authorityFile)}
Paste into the shell of your program on this machine, for both SDKs:
${exportsOf(localVariables(about))}${
    tls && !isLocalName(tls.domain)
      ? `\nOn other machines, where ${tls.domain} and *.${tls.domain} lead to this ` +
        `one:\n${exportsOf(publicVariables({ apiKey, tls }))}`
      : ''
  }
JavaScript, on Node.js 20.19, 22.12 or newer, after \`npm install e2b\`:
  node --input-type=module -e "import { Sandbox } from 'e2b'; const sandbox = await Sandbox.create(); \
console.log((await sandbox.commands.run('echo Hello from \\$(hostname)')).stdout); await sandbox.kill()"

Python, after \`pip install e2b\`:
  python3 -c "from e2b import Sandbox; sandbox = Sandbox.create(); \
print(sandbox.commands.run('echo Hello from \\$(hostname)').stdout); sandbox.kill()"

curl:
  curl -X POST ${url}/sandboxes -H 'X-API-Key: ${apiKey}' -H 'Content-Type: application/json' \
-d '{"templateID": "base", "timeout": 60}'

Ctrl-C stops the platform; its sandboxes run on and are taken over by the next start. \
\`npm run down\` ends those that run, \`npm run down -- --all\` removes paused ones too.
`;
}
