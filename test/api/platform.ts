import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog } from '../../src/base/log.ts';
import type { Features } from '../../src/api/app/context.ts';
import { createAccessToken } from '../../src/api/app/access-tokens.ts';
import { createApiKey, createTeam } from '../../src/api/app/provision-team.ts';
import { addMember, createUser } from '../../src/api/app/provision-user.ts';
import { registerTemplate } from '../../src/api/app/provision-template.ts';
import type { TemplateRegistration } from '../../src/api/app/provision-template.ts';
import type { BuildProtocol } from '../../src/protocol/build.ts';
import type { SteadyClock } from '../../src/api/app/clock.ts';
import { startApi } from '../../src/api/start.ts';
import type { Api, ApiOptions } from '../../src/api/start.ts';
import type { WebhookSettings } from '../../src/api/webhooks/settings.ts';
import { openStore } from '../../src/api/store/database.ts';
import type { Store, StoreLocation } from '../../src/api/store/database.ts';
import type { UserRecord } from '../../src/api/store/user.ts';
import { randomName } from '../../src/base/id.ts';
import type { TeamLimits, TeamRecord } from '../../src/api/store/team.ts';
import type { Database } from './databases.ts';
import type { NodeProtocol } from '../../src/protocol/node.ts';
import { nodeTable } from '../../src/protocol/wire/node-table.ts';
import { wiredInMemory } from '../wire/support/pair.ts';
import { FakeNode } from './fake-node.ts';

export type Answer = { status: number; headers: Headers; body: unknown };

export type PlatformOptions = {
  database?: Database;
  limits?: Partial<TeamLimits>;
  features?: Partial<Features>;
  builder?: BuildProtocol;
  webhooks?: Partial<WebhookSettings>;
  requireSecure?: boolean;
  clock?: SteadyClock;
  spans?: ApiOptions['spans'];
  buildsAllowed?: ApiOptions['buildsAllowed'];
  templateDrivers?: ApiOptions['templateDrivers'];
};

/** The operator's token of every platform in the tests. */
export const adminToken = 'operator-of-the-tests';

export const metricsToken = 'scraper-of-the-tests';

/** A whole API on a temporary directory with a fake node, one team, its key, and the template `base`. */
export class Platform implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'atoll-api-'));
  readonly node = new FakeNode(join(this.directory, 'node'));
  /** What the API logged as warning or error. */
  readonly logged: string[] = [];
  readonly #options: PlatformOptions;
  #location!: StoreLocation;
  #store!: Store;
  api!: Api;
  team!: TeamRecord;
  key!: string;

  private constructor(options: PlatformOptions) {
    this.#options = options;
  }

  static async start(options: PlatformOptions = {}): Promise<Platform> {
    const platform = new Platform(options);
    platform.#location = (await options.database?.location()) ?? { kind: 'sqlite', path: join(platform.directory, 'atoll.db') };
    await platform.#start();
    platform.team = await createTeam(platform.api.app, { name: 'Default', slug: 'default' });
    platform.key = (await createApiKey(platform.api.app, platform.team, 'first')).text;
    await registerTemplate(platform.api.app, platform.team, baseTemplate);
    return platform;
  }

  get socketPath(): string {
    return join(this.directory, 'api.sock');
  }

  get location(): StoreLocation {
    return this.#location;
  }

  get store(): Store {
    return this.#store;
  }

  /** Another team with a key of its own. */
  async otherTeam(slug = 'other', limits: Partial<TeamLimits> = {}): Promise<{ team: TeamRecord; key: string }> {
    const team = await createTeam(this.api.app, { name: slug, slug, limits });
    return { team, key: (await createApiKey(this.api.app, team, 'key')).text };
  }

  /** A user who is a member of the given teams, and an access token of hers. */
  async user(...teams: TeamRecord[]): Promise<{ user: UserRecord; token: string }> {
    const name = `user${randomName(6)}`;
    const user = await createUser(this.api.app, { email: `${name}@example.com`, name });
    for (const team of teams) await addMember(this.api.app, team, user);
    return { user, token: (await createAccessToken(this.api.app, user, 'first')).text };
  }

  /** Sends a request with the team's key; a body that is no string goes as JSON. */
  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return call(this.socketPath, method, path, body, { 'x-api-key': this.key, ...headers });
  }

  /** A sandbox of `base` that runs. */
  async createSandbox(body: Record<string, unknown> = {}): Promise<{ sandboxID: string } & Record<string, unknown>> {
    const answer = await this.call('POST', '/v2/sandboxes', { templateID: 'base', ...body });
    if (answer.status !== 201) throw new Error(`create answered ${answer.status}: ${JSON.stringify(answer.body)} ${this.logged.join('')}`);
    return answer.body as { sandboxID: string } & Record<string, unknown>;
  }

  /** Stops the API and starts it again on the same data. */
  async restart(): Promise<void> {
    await this.#stop();
    await this.#start();
  }

  async #start(): Promise<void> {
    this.#store = await openStore(this.#location);
    this.api = await startApi({
      socketPath: this.socketPath,
      store: this.#store,
      node: wiredInMemory(nodeTable, this.node as NodeProtocol, 'api').remote,
      seed: new Uint8Array(32).fill(7),
      log: createLog('warn', line => this.logged.push(line)),
      adminToken,
      metricsToken,
      checkAnswers: true,
      ...(this.#options.clock && { clock: this.#options.clock }),
      ...(this.#options.spans && { spans: this.#options.spans }),
      ...(this.#options.limits && { limits: this.#options.limits }),
      ...(this.#options.features && { features: this.#options.features }),
      ...(this.#options.requireSecure && { requireSecure: true }),
      ...(this.#options.buildsAllowed && { buildsAllowed: this.#options.buildsAllowed }),
      ...(this.#options.templateDrivers && { templateDrivers: this.#options.templateDrivers }),
      ...(this.#options.webhooks && { webhooks: this.#options.webhooks }),
      ...(this.#options.builder && { builder: this.#options.builder, filesDir: join(this.directory, 'files') }),
    });
  }

  async #stop(): Promise<void> {
    await this.api.stop();
    await this.#store[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export const baseTemplate: TemplateRegistration = {
  alias: 'base',
  public: true,
  layers: ['sha256:00'],
  cpuCount: 2,
  memoryMiB: 1024,
  diskMiB: 5120,
  config: { defaultUser: 'user', defaultWorkdir: '', buildEnv: {} },
};

export async function call(
  socketPath: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`http://api${path}`, {
    unix: socketPath,
    method,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const isText = response.headers.get('content-type')?.startsWith('text/') ?? false;
  return { status: response.status, headers: response.headers, body: text === '' ? undefined : isText ? text : JSON.parse(text) };
}

/** Waits until `condition` holds; fails after `limitMs`. */
export async function until(condition: () => boolean | Promise<boolean>, limitMs = 10_000): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error('the awaited state did not come');
    await Bun.sleep(10);
  }
}
