/** What a person needs to use the platform that has just started. */
export type Welcome = {
  /** Origin of the one port, e.g. `http://localhost:3000`. */
  url: string;
  /** Where a TLS port is open; `authorityFile` is to be trusted where no public authority has signed. */
  tls?: { url: string; authorityFile: string | null } | undefined;
  apiKey: string;
  /** File that keeps the key for the next start. */
  apiKeyFile: string;
  /** Domain with port, of which sandboxes have their own hosts. */
  domain: string;
  dataDir: string;
  /** Templates that are being built in the background. */
  building: string[];
};

/** The address, the key, and lines to paste that work as they stand. */
export function welcomeText({ url, tls, apiKey, apiKeyFile, domain, dataDir, building }: Welcome): string {
  return `
Atoll is ready at ${url}${tls ? ` and ${tls.url}` : ''}
  API key   ${apiKey}   (kept in ${apiKeyFile}, for root only)
  data      ${dataDir}
  previews  http://PORT-SANDBOX_ID.${domain}
${building.length > 0 ? `  building  ${building.join(', ')} in the background, a minute or two; creates from it wait, \`atoll template list\` shows it\n` : ''}${tls?.authorityFile ? `  trust     export NODE_EXTRA_CA_CERTS=${tls.authorityFile} SSL_CERT_FILE=${tls.authorityFile}\n` : ''}
Paste into the shell of your program, for both SDKs:
  export E2B_API_KEY=${apiKey}
  export E2B_API_URL=${url} E2B_SANDBOX_URL=${url} E2B_DOMAIN=${domain}

JavaScript, on Node.js 20.19, 22.12 or newer, after \`npm install e2b\`:
  node --input-type=module -e "import { Sandbox } from 'e2b'; const sandbox = await Sandbox.create(); console.log((await sandbox.commands.run('echo Hello from \\$(hostname)')).stdout); await sandbox.kill()"

Python, after \`pip install e2b\`:
  python3 -c "from e2b import Sandbox; sandbox = Sandbox.create(); print(sandbox.commands.run('echo Hello from \\$(hostname)').stdout); sandbox.kill()"

curl:
  curl -X POST ${url}/sandboxes -H 'X-API-Key: ${apiKey}' -H 'Content-Type: application/json' -d '{"templateID": "base", "timeout": 60}'

Ctrl-C stops the platform; its sandboxes run on and are taken over by the next start. \`npm run down\` ends those that run, \`npm run down -- --all\` removes paused ones too.
`;
}
