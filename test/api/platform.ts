import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLog } from '../../src/base/telemetry/log.ts';
import { createAccessToken } from '../../src/api/credential/rules/access-tokens.ts';
import { createTeam } from '../../src/api/team/rules/provision-team.ts';
import { createApiKey } from '../../src/api/credential/rules/api-keys.ts';
import { addMember, createUser } from '../../src/api/team/rules/provision-user.ts';
import { registerTemplate } from './support/register-template.ts';
import type { TemplateRegistration } from './support/register-template.ts';
import type { BuildProtocol } from '../../src/protocol/build.ts';
import type { SteadyClock } from '../../src/base/clock.ts';
import { routeTable } from '../../src/api/http/match.ts';
import { routes } from '../../src/api/routes.ts';
import { startApi } from '../../src/api/start.ts';
import type { Api } from '../../src/api/start.ts';
import type { ApiOptions } from '../../src/api/options.ts';
import type { WebhookSettings } from '../../src/api/webhook/delivery/settings.ts';
import { openStore } from '../../src/api/database/database.ts';
import type { Store } from '../../src/api/database/database.ts';
import type { StoreLocation } from '../../src/api/database/db.ts';
import { randomName } from '../../src/base/id.ts';
import type { Database } from './databases.ts';
import type { NodeProtocol } from '../../src/protocol/node.ts';
import { nodeTable } from '../../src/protocol/wire/node-table.ts';
import { wiredInMemory } from '../wire/support/pair.ts';
import { newSqliteStore } from './support/sqlite.ts';
import { FakeNode } from './fake-node.ts';
import { layer } from './support/layer.ts';
import type { Features } from '../../src/api/sandbox/features.ts';
import type { TeamLimits, TeamRecord, UserRecord } from '../../src/api/team/record.ts';

export type Answer = { status: number; headers: Headers; body: unknown };

type PlatformOptions = {
  database?: Pick<Database, 'name' | 'location'>;
  limits?: Partial<TeamLimits>;
  features?: Partial<Features>;
  builder?: BuildProtocol;
  webhooks?: Partial<WebhookSettings>;
  /** Checks answers against their schemas, which takes longer than most answers. Default: yes. */
  checkAnswers?: boolean;
  requireSecure?: boolean;
  clock?: SteadyClock;
  spans?: ApiOptions['spans'];
  buildsAllowed?: ApiOptions['buildsAllowed'];
  templateDrivers?: ApiOptions['templateDrivers'];
  oidc?: ApiOptions['oidc'];
  dashboard?: ApiOptions['dashboard'];
  /** Makes the node in its own directory; default: a `FakeNode`. */
  makeNode?: (directory: string) => FakeNode;
};

const table = routeTable(routes);

/** The operator's token of every platform in the tests. */
export const adminToken = 'operator-of-the-tests';

export const metricsToken = 'scraper-of-the-tests';

/** A whole API on a temporary directory with a fake node, one team, its key, and the template `base`. */
export class Platform implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'atoll-api-'));
  readonly node: FakeNode;
  /** The API's warnings and errors in the log. */
  readonly logged: string[] = [];
  readonly #options: PlatformOptions;
  #location!: StoreLocation;
  #store!: Store;
  api!: Api;
  team!: TeamRecord;
  key!: string;

  private constructor(options: PlatformOptions) {
    this.#options = options;
    const directory = join(this.directory, 'node');
    this.node = options.makeNode?.(directory) ?? new FakeNode(directory);
  }

  static async start(options: PlatformOptions = {}): Promise<Platform> {
    const platform = new Platform(options);
    platform.#location =
      (await options.database?.location()) ?? (await newSqliteStore(join(platform.directory, 'atoll.db')));
    await platform.#start();
    platform.team = await createTeam(platform.api.parts, { name: 'Default', slug: 'default' });
    platform.key = (await createApiKey(platform.api.parts, platform.team, 'first')).text;
    await registerTemplate(platform.api.parts, platform.team, baseTemplate);
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
    const team = await createTeam(this.api.parts, { name: slug, slug, limits });
    return { team, key: (await createApiKey(this.api.parts, team, 'key')).text };
  }

  /** A user who is a member of the given teams, and an access token of hers. */
  async user(...teams: TeamRecord[]): Promise<{ user: UserRecord; token: string }> {
    const name = `user${randomName(6)}`;
    const user = await createUser(this.api.parts, { email: `${name}@example.com`, name });
    for (const team of teams) await addMember(this.api.parts, team, user);
    return { user, token: (await createAccessToken(this.api.parts, user, 'first')).text };
  }

  /** Sends a request with the team's key; a body that is not a string is sent as JSON. */
  async call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return call(this.socketPath, method, path, body, { 'x-api-key': this.key, ...headers });
  }

  /** A sandbox of `base` that runs. */
  async createSandbox(body: Record<string, unknown> = {}): Promise<{ sandboxID: string } & Record<string, unknown>> {
    const answer = await this.call('POST', '/v2/sandboxes', { templateID: 'base', ...body });
    if (answer.status !== 201)
      throw new Error(`create answered ${answer.status}: ${JSON.stringify(answer.body)} ${this.logged.join('')}`);
    return answer.body as { sandboxID: string } & Record<string, unknown>;
  }

  /**
   * Resolves once a reconciler has had its first round, which begins with the API: the next one comes after its
   * interval.
   */
  firstRoundOf(reconciler: string): Promise<void> {
    return until(() => this.api.parts.measures.recent.rounds().some(({ name }) => name === reconciler));
  }

  /** Stops the API and starts it again on the same data. */
  async restart(): Promise<void> {
    await this.#stop();
    await this.#start();
  }

  /** Another API on the same database and node, as a second process of a cluster. */
  async replica(): Promise<{ socketPath: string } & AsyncDisposable> {
    const socketPath = join(this.directory, `replica-${randomName(6)}.sock`);
    const store = await openStore(this.#location);
    const api = await this.#startOn(socketPath, store);
    return {
      socketPath,
      async [Symbol.asyncDispose]() {
        await api.stop();
        await store[Symbol.asyncDispose]();
      },
    };
  }

  async #start(): Promise<void> {
    this.#store = await openStore(this.#location);
    this.api = await this.#startOn(this.socketPath, this.#store);
  }

  async #startOn(socketPath: string, store: Store): Promise<Api> {
    return await startApi({
      socketPath,
      store,
      node: wiredInMemory(nodeTable, this.node as NodeProtocol, 'api').remote,
      seed: new Uint8Array(32).fill(7),
      log: createLog('warn', line => this.logged.push(line)),
      adminToken,
      metricsToken,
      checkAnswers: this.#options.checkAnswers ?? true,
      examine: async () => [{ name: 'a sandbox', status: 'ok', detail: 'it ran', needed: true }],
      ...(this.#options.clock && { clock: this.#options.clock }),
      ...(this.#options.dashboard && { dashboard: this.#options.dashboard }),
      ...(this.#options.oidc && { oidc: this.#options.oidc }),
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
  layers: [layer('00')],
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
    // As an API's clients do; a client that accepts anything is told where things are, at this very address.
    headers: {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  if (!response.ok) requireDocumented(method, path, response.status);
  const text = await response.text();
  const isText = response.headers.get('content-type')?.startsWith('text/') ?? false;
  return {
    status: response.status,
    headers: response.headers,
    body: text === '' ? undefined : isText ? text : JSON.parse(text),
  };
}

/** Fails for an error that the API's document does not list for the route. */
function requireDocumented(method: string, path: string, status: number): void {
  const match = found(method, path);
  if (match?.kind === 'found' && !match.route.errors.includes(status))
    throw new Error(`${match.route.operationId} answered ${status}, which its errors do not have`);
}

/** Undefined: a part of the path is malformed. */
function found(method: string, path: string): ReturnType<typeof table> | undefined {
  try {
    return table(method, path.split('?', 1)[0] ?? '');
  } catch {
    return undefined;
  }
}

/** Waits until `condition` holds; fails after `limitMs`. */
export async function until(condition: () => boolean | Promise<boolean>, limitMs = 30_000): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error('the awaited state did not come');
    await Bun.sleep(10);
  }
}
