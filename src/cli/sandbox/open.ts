import type { Sandbox } from 'e2b';
import { AtollError, messageOf } from '../../base/error.ts';
import type { Connect } from '../connection/connection.ts';

/** How long a command waits for an answer of a sandbox, milliseconds. */
const requestTimeoutMs = 60_000;

/** How to reach a sandbox's agent without the published client. */
export type AgentWay = { url: string; headers: Record<string, string> };

/**
 * Works in a running sandbox through the published client: what happens inside goes the same way as for programs.
 * Resumes a paused sandbox. Errors of the client become `not_found` or `unavailable`.
 */
export async function withSandbox<T>(
  connect: Connect,
  sandboxId: string,
  use: (sandbox: Sandbox, way: AgentWay) => Promise<T>,
): Promise<T> {
  const { url, apiKey, domain } = connect();
  const client = await import('e2b');
  try {
    const options = { apiKey, apiUrl: url, sandboxUrl: url, domain, requestTimeoutMs };
    const connected = reachable(client.Sandbox)
      .connect(sandboxId, options)
      .catch((error: unknown) => {
        // The client speaks of a paused sandbox, whatever was named.
        if (!(error instanceof client.NotFoundError)) throw error;
        throw new AtollError('not_found', `Sandbox "${sandboxId}" was not found`, { cause: error });
      });
    const sandbox = await connected;
    return await use(sandbox, { url, headers: sandbox.agentHeaders() });
  } catch (error) {
    if (error instanceof client.NotFoundError) throw new AtollError('not_found', messageOf(error), { cause: error });
    // The client's errors have no common class: without credentials, or if the platform is away or full, it throws some
    // that are no SandboxError.
    const isOfClient = [client.SandboxError, client.AuthenticationError, client.ServiceBusyError].some(
      kind => error instanceof kind,
    );
    // The client parses what it takes for an answer of the API.
    if (error instanceof SyntaxError || (error instanceof TypeError && !URL.canParse(url)))
      throw new AtollError('unavailable', `What answers at ${url} is no Atoll: ${messageOf(error)}`, { cause: error });
    throw isOfClient ? new AtollError('unavailable', messageOf(error), { cause: error }) : error;
  }
}

/** The published client, extended to give the URL and headers of its requests to an agent. */
function reachable(Client: typeof Sandbox) {
  return class extends Client {
    agentHeaders(): Record<string, string> {
      return {
        'E2b-Sandbox-Id': this.sandboxId,
        'E2b-Sandbox-Port': String(this.envdPort),
        ...(this.envdAccessToken !== undefined && { 'X-Access-Token': this.envdAccessToken }),
      };
    }
  };
}
