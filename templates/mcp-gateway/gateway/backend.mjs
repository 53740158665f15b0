import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ResultSchema } from '@modelcontextprotocol/sdk/types.js';

/** Of one answer of a server. Clients of the gateway give up earlier, and say so. */
const callMs = 3_600_000;
/** Pages of one list: a server that does not end its list is broken. */
const pagesMax = 100;
/** Of what a server said on its error output, in an error. */
const shownCharacters = 1000;

/** One server of the configuration: a program that speaks over its input and output. */
export class Backend {
  #run;
  #onNotification;
  #client;

  constructor(run, onNotification) {
    this.#run = run;
    this.#onNotification = onNotification;
  }

  get name() {
    return this.#run.name;
  }

  /** The connection to the server, which is started where it does not run, or does no more. */
  client() {
    this.#client ??= this.#start().catch(error => {
      this.#client = undefined;
      throw error;
    });
    return this.#client;
  }

  /** Sends a request as it came, and answers what the server does. */
  async request(method, params, options = {}) {
    const client = await this.client();
    return client.request({ method, params }, ResultSchema, { timeout: callMs, ...options });
  }

  /** All of a list; empty where the server has nothing of that kind. A server that ends meanwhile is started again. */
  list(method, member) {
    return this.#listOnce(method, member).catch(() => this.#listOnce(method, member));
  }

  async #listOnce(method, member) {
    const client = await this.client();
    if (!client.getServerCapabilities()?.[method.split('/')[0]]) return [];
    const found = [];
    let cursor;
    for (let page = 0; page < pagesMax; page++) {
      const answer = await this.request(method, cursor === undefined ? {} : { cursor });
      found.push(...(answer[member] ?? []));
      cursor = answer.nextCursor;
      if (cursor === undefined) return found;
    }
    throw new Error(`${this.name}: its list has more than ${pagesMax} pages`);
  }

  async #start() {
    const { name, command, args, env, cwd } = this.#run;
    const run = { command, args, env: { LANG: 'C.UTF-8', ...env }, cwd };
    const transport = new StdioClientTransport({ ...run, stderr: 'pipe' });
    let said = '';
    transport.stderr.on('data', data => {
      process.stderr.write(data);
      said = (said + data).slice(-shownCharacters);
    });
    const client = new Client({ name: 'mcp-gateway', version: '1.0.0' });
    client.fallbackNotificationHandler = async notification => {
      if (notification.method.endsWith('/list_changed')) this.#onNotification(notification);
    };
    client.onclose = () => (this.#client = undefined);
    try {
      await client.connect(transport);
    } catch (error) {
      throw new Error(`${name}: could not be started: ${said.trim() || error.message}`);
    }
    return client;
  }
}
