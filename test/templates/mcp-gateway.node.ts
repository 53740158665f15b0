import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { CommandExitError, Sandbox, Template, defaultBuildLogger } from 'e2b';
import { repository, startPlatform, type TestPlatform } from '../support/platform.ts';
import { buildMs, built } from './built.ts';

let platform: TestPlatform;
before(
  async () => {
    platform = await startPlatform();
    Object.assign(process.env, platform.env);
  },
  { timeout: 120_000 },
);
after(() => platform[Symbol.asyncDispose]());

/** A client of the gateway in a sandbox, with the SDK's URL and token; the URL's name resolves nowhere here. */
async function connect(sandbox: Sandbox, token: string | undefined): Promise<Client> {
  const url = new URL(sandbox.getMcpUrl());
  assert.match(url.href, /^https:\/\/50005-[a-z0-9]+\..*\/mcp$/);
  const transport = new StreamableHTTPClientTransport(url, {
    fetch: (target, init) => {
      const headers = new Headers(init?.headers);
      headers.set('E2b-Sandbox-Id', sandbox.sandboxId);
      headers.set('E2b-Sandbox-Port', '50005');
      return fetch(new URL(new URL(target).pathname, platform.ready.url), { ...init, headers });
    },
    requestInit: { headers: { Authorization: `Bearer ${token}` } },
  });
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(transport);
  return client;
}

async function call(client: Client, name: string, args: Record<string, unknown>): Promise<string> {
  const result = await client.request(
    { method: 'tools/call', params: { name, arguments: args } },
    CallToolResultSchema,
  );
  const text = result.content.map(part => (part.type === 'text' ? part.text : part.type)).join('');
  assert.ok(!result.isError, text);
  return text;
}

/** As long as all servers together take on a busy machine, milliseconds. */
const listMs = 2 * buildMs;
const startMs = 180_000;

/** The command that the SDK runs in a sandbox for its option `mcp`; answers its message if it fails. */
async function startGateway(sandbox: Sandbox, configuration: object): Promise<void> {
  await sandbox.commands
    .run(`mcp-gateway --config '${JSON.stringify(configuration)}'`, {
      user: 'root',
      envs: { GATEWAY_ACCESS_TOKEN: 'token-of-the-test' },
      timeoutMs: startMs,
    })
    .catch((error: Error) => {
      throw error instanceof CommandExitError ? new Error(error.stderr) : error;
    });
}

describe('the option `mcp`', () => {
  let sandbox: Sandbox;
  let client: Client;
  before(
    async () => {
      const mcp = { filesystem: { paths: ['/home/user'] }, memory: {}, time: {} };
      sandbox = await built(() => Sandbox.create({ mcp, timeoutMs: 600_000 }));
      client = await connect(sandbox, await sandbox.getMcpToken());
    },
    { timeout: buildMs },
  );
  after(async () => {
    await client?.close();
    await sandbox?.kill();
  });

  it('has the tools of all its servers, of npm and of PyPI, and they do what they do', async () => {
    const { tools } = await client.listTools();
    const names = tools.map(({ name }) => name);
    for (const name of ['write_file', 'create_entities', 'get_current_time'])
      assert.ok(names.includes(name), `${names}`);
    await call(client, 'write_file', { path: '/home/user/by-mcp.txt', content: 'written by a tool' });
    assert.equal(await sandbox.files.read('/home/user/by-mcp.txt'), 'written by a tool');
    const entities = [{ name: 'Atoll', entityType: 'platform', observations: ['it remembers'] }];
    await call(client, 'create_entities', { entities });
    assert.match(await call(client, 'read_graph', {}), /it remembers/);
    assert.match(await call(client, 'get_current_time', { timezone: 'Europe/Lisbon' }), /Europe\/Lisbon/);
  });

  it('runs its servers as the user, and keeps keys and token out of command lines', async () => {
    const { stdout } = await sandbox.commands.run('ps -eo user:20,args | grep [m]cp-', { user: 'root' });
    assert.ok(!/^root/m.test(stdout), stdout);
    assert.ok(!stdout.includes((await sandbox.getMcpToken()) ?? '?'), stdout);
  });

  it('starts a server again that has ended', async () => {
    await sandbox.commands.run('pkill -f mcp-server-memory');
    assert.match(await call(client, 'read_graph', {}), /it remembers/);
  });

  it('lets nobody in without the token, and tells it to who connects later', async () => {
    await assert.rejects(connect(sandbox, 'another'), /The token of the gateway is needed/);
    const later = await Sandbox.connect(sandbox.sandboxId);
    const again = await connect(later, await later.getMcpToken());
    assert.ok((await again.listTools()).tools.length > 0);
    await again.close();
  });

  it('outlives a pause', async () => {
    await sandbox.pause();
    await Sandbox.connect(sandbox.sandboxId);
    assert.match(await call(client, 'read_graph', {}), /it remembers/);
  });

  it('refuses by name what is not offered, and leaves no sandbox', async () => {
    const mcp = { airtable: { airtableApiKey: 'key', nodeenv: 'production' } };
    const count = async () => (await Sandbox.list().nextItems()).length;
    const before = await count();
    await assert.rejects(
      Sandbox.create({ mcp }),
      /Failed to start MCP gateway: .*airtable: this server is not offered/,
    );
    assert.equal(await count(), before);
  });
});

describe('a server of a repository', () => {
  // Its only download is one clone, here from a folder in the sandbox.
  const program = `
    const send = message => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
    const results = {
      initialize: ({ protocolVersion }) => ({
        protocolVersion, capabilities: { tools: {}, resources: {} }, serverInfo: { name: 'own', version: '1' },
      }),
      'tools/list': () => ({ tools: [{ name: 'read_file', inputSchema: { type: 'object' } }] }),
      'tools/call': () => {
        const text = process.env.GREETING + require('fs').readFileSync('made', 'utf8');
        return { content: [{ type: 'text', text }] };
      },
      'resources/list': () => ({ resources: [{ uri: 'own://one', name: 'one' }] }),
      'resources/templates/list': () => ({ resourceTemplates: [] }),
      'resources/read': ({ uri }) => ({ contents: [{ uri, text: 'of the repository' }] }),
    };
    require('readline').createInterface(process.stdin).on('line', line => {
      const { id, method, params } = JSON.parse(line);
      if (method === 'tools/call') {
        const { progressToken } = params._meta ?? {};
        send({ method: 'notifications/progress', params: { progressToken, progress: 1, total: 2 } });
      }
      // Work that takes a while: what is told of it comes before its end, and not with it.
      const answer = () => send({ id, result: results[method]?.(params) ?? {} });
      if (id !== undefined) setTimeout(answer, method === 'tools/call' ? 200 : 0);
    });`;

  it(
    'is cloned, installed and run; a tool of the same name has its server before it',
    { timeout: buildMs },
    async () => {
      const sandbox = await built(() => Sandbox.create('mcp-gateway'));
      try {
        await sandbox.files.write('/home/user/origin/server.js', program);
        const git = 'git -c user.name=T -c user.email=t@example.org -c init.defaultBranch=main';
        await sandbox.commands.run(`cd /home/user/origin && ${git} init && ${git} add . && ${git} commit -m first`);
        const insteadOf = 'url.file:///home/user/origin.insteadOf https://github.com/owner/name';
        await sandbox.commands.run(`git config --system ${insteadOf}`, { user: 'root' });
        const installed = {
          installCmd: 'echo -n sandbox > made',
          runCmd: 'node server.js',
          envs: { GREETING: 'hello ' },
        };
        await startGateway(sandbox, { filesystem: { paths: ['/tmp'] }, 'github/owner/name': installed });
        const client = await connect(sandbox, 'token-of-the-test');
        const names = (await client.listTools()).tools.map(({ name }) => name);
        assert.ok(names.includes('read_file') && names.includes('github_owner_name_read_file'), `${names}`);
        const progress: unknown[] = [];
        const own = await client.request(
          { method: 'tools/call', params: { name: 'github_owner_name_read_file', arguments: {} } },
          CallToolResultSchema,
          { onprogress: seen => progress.push(seen) },
        );
        assert.deepEqual(own.content, [{ type: 'text', text: 'hello sandbox' }]);
        assert.deepEqual(progress, [{ progress: 1, total: 2 }]);
        assert.deepEqual((await client.listResources()).resources, [{ uri: 'own://one', name: 'one' }]);
        const { contents } = await client.readResource({ uri: 'own://one' });
        assert.deepEqual(contents, [{ uri: 'own://one', text: 'of the repository' }]);
        await assert.rejects(
          client.callTool({ name: 'nothing', arguments: {} }),
          /No server has nothing among its tools/,
        );
        await client.close();
        await assert.rejects(
          startGateway(sandbox, { 'github/owner/name': { runCmd: 'echo broken >&2; exit 3' } }),
          /github\/owner\/name: could not be started: broken/,
        );
      } finally {
        await sandbox.kill();
      }
    },
  );
});

describe('the list of servers', () => {
  const servers = JSON.parse(readFileSync(join(repository, 'templates/mcp-gateway/servers.json'), 'utf8')) as Record<
    string,
    { settings?: Record<string, { variable?: string }> }
  >;
  const names = Object.keys(servers);

  it('is put into templates by the SDK, all of it, and each server lists its tools', { timeout: listMs }, async () => {
    await built(() => Sandbox.create('mcp-gateway')).then(sandbox => sandbox.kill());
    const template = Template()
      .fromTemplate('mcp-gateway')
      .addMcpServer(names as Parameters<ReturnType<ReturnType<typeof Template>['fromTemplate']>['addMcpServer']>[0]);
    await Template.build(template, 'all-servers', { memoryMB: 4096, onBuildLogs: defaultBuildLogger() });
    const sandbox = await Sandbox.create('all-servers', { timeoutMs: listMs });
    try {
      await sandbox.commands.run('git init /tmp/repository');
      const settingOf = (name: string, variable?: string) =>
        variable === undefined
          ? [name === 'git' ? '/tmp/repository' : '/tmp']
          : variable === 'MDB_MCP_CONNECTION_STRING'
            ? 'mongodb://127.0.0.1:1'
            : 'placeholder';
      const configuration = Object.fromEntries(
        Object.entries(servers).map(([name, { settings = {} }]) => [
          name,
          Object.fromEntries(Object.entries(settings).map(([key, { variable }]) => [key, settingOf(name, variable)])),
        ]),
      );
      for (const name of names) {
        await startGateway(sandbox, { [name]: configuration[name] });
        const client = await connect(sandbox, 'token-of-the-test');
        assert.ok((await client.listTools()).tools.length > 0, name);
        await client.close();
        await sandbox.commands.run(
          'pkill -f [g]ateway/serve.mjs; while pgrep -f [g]ateway/serve.mjs; do sleep 0.1; done',
          { user: 'root' },
        );
      }
    } finally {
      await sandbox.kill();
    }
  });
});
