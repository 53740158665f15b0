import { agentPort } from '../../src/protocol/agent.ts';

/** The platform under the bench. */
export type Target = {
  url: string;
  apiKey: string;
  /** The platform's process; its helper and everything else it started are its children. */
  readonly pid: number;
  readonly dataDir: string;
  /** Ends the platform like a crash and starts it again; resolves once it serves. */
  crashAndRestart(): Promise<void>;
};

export type Sandbox = { sandboxID: string; envdAccessToken: string };

/** The few calls that the bench makes, as plain as a client can make them: one request each, over kept connections. */
export function clientOf({ url, apiKey }: Target) {
  const api = async (method: string, path: string, body?: unknown): Promise<Response> => {
    const response = await fetch(url + path, {
      method,
      headers: { 'x-api-key': apiKey, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response;
  };
  const toAgent = (sandbox: Sandbox) => ({
    'e2b-sandbox-id': sandbox.sandboxID,
    'e2b-sandbox-port': String(agentPort),
    'x-access-token': sandbox.envdAccessToken,
  });
  return {
    api,
    toAgent,
    create: async ({ templateID = 'base', timeout = 3600 } = {}): Promise<Sandbox> =>
      (await api('POST', '/v2/sandboxes', { templateID, timeout })).json() as Promise<Sandbox>,
    kill: (sandbox: Sandbox) => api('DELETE', `/sandboxes/${sandbox.sandboxID}`),
    /** Runs a program and reads its stream to the end. */
    async run(sandbox: Sandbox, cmd: string, args: string[] = []): Promise<string> {
      const message = Buffer.from(JSON.stringify({ process: { cmd, args }, stdin: false }));
      const body = Buffer.concat([Buffer.from([0, 0, 0, 0, 0]), message]);
      body.writeUInt32BE(message.length, 1);
      const response = await fetch(`${url}/process.Process/Start`, {
        method: 'POST',
        headers: { ...toAgent(sandbox), 'content-type': 'application/connect+json', 'connect-protocol-version': '1' },
        body,
      });
      const text = await response.text();
      if (!text.includes('"exited":true')) throw new Error(`${cmd} did not exit: ${text.slice(0, 200)}`);
      return text;
    },
  };
}

export type Client = ReturnType<typeof clientOf>;
