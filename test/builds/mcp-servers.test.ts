import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

const folder = join(repository, 'templates/mcp-gateway');

type Server = { npm?: string; pypi?: string; settings?: Record<string, unknown> };
const offered = JSON.parse(readFileSync(join(folder, 'servers.json'), 'utf8')) as Record<string, Server>;

/** The servers that the installed client knows, with the required settings of each. */
function serversOfClient(): Map<string, string[]> {
  const declarations = readFileSync(join(repository, 'node_modules/e2b/dist/index.d.ts'), 'utf8');
  const bodyOf = (type: string) =>
    new RegExp(`^interface ${RegExp.escape(type)} \\{(.*?)\\}$`, 'ms').exec(declarations)?.[1];
  const servers = [...(bodyOf('McpServer') ?? '').matchAll(/^ {2}(\w+)\?: ([\w$]+);$/gm)];
  return new Map(
    servers.map(([, name = '', type = '']) => [
      name,
      [...(bodyOf(type) ?? '').matchAll(/^ {2}(\w+): /gm)].map(([, setting = '']) => setting),
    ]),
  );
}

test('each server that is offered is one that the published client names, with the settings that it sends', () => {
  const known = serversOfClient();
  expect(known.size).toBeGreaterThan(200);
  expect(Object.keys(offered).length).toBeGreaterThan(10);
  for (const [name, { npm, pypi, settings = {} }] of Object.entries(offered)) {
    expect([name, known.get(name)?.toSorted()]).toEqual([name, Object.keys(settings).toSorted()]);
    // Exact versions, all from one registry.
    expect([npm, pypi].filter(Boolean).join()).toMatch(/^@?[\w./-]+(@|==)\d+\.\d+\.\d+$/);
  }
});

/** The message of the gateway's program for a configuration that it refuses. */
async function refusal(configuration: unknown, env: Record<string, string> = { GATEWAY_ACCESS_TOKEN: 'token' }) {
  const text = typeof configuration === 'string' ? configuration : JSON.stringify(configuration);
  const { exitCode, stderr } = await runToEnd(['node', join(folder, 'gateway/main.mjs'), '--config', text], {
    env: { PATH: process.env['PATH'], ...env },
  });
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/^mcp-gateway: .*\n$/);
  return stderr;
}

test('what is not offered, and settings that are missing, unknown or wrong, are refused by name', async () => {
  expect(await refusal({ airtable: { airtableApiKey: 'key' } })).toMatch(/airtable: this server is not offered here/);
  expect(await refusal({ constructor: {} })).toMatch(/constructor: this server is not offered here/);
  expect(await refusal({ exa: {} })).toMatch(/exa\.apiKey is needed, as a text/);
  expect(await refusal({ exa: { apiKey: 'key', region: 'eu' } })).toMatch(/exa: region is no setting of this server/);
  expect(await refusal({ filesystem: { paths: ['--help'] } })).toMatch(
    /filesystem\.paths is needed, as a list of abso/,
  );
  expect(await refusal({ git: { paths: ['/a', '/b'] } })).toMatch(/git\.paths may have one path/);
  expect(await refusal({ time: null })).toMatch(/time: its settings must be an object/);
  expect(await refusal('{')).toMatch(/the configuration is no JSON/);
  expect(await refusal([])).toMatch(/must be an object with a member for each server/);
  expect(await refusal({ time: {} }, {})).toMatch(/GATEWAY_ACCESS_TOKEN is not set/);
});

test('a repository is named by its owner and its name, and says how it is run', async () => {
  expect(await refusal({ 'github/owner/../..': { runCmd: 'run' } })).toMatch(/this server is not offered here/);
  expect(await refusal({ 'github/owner/..': { runCmd: 'run' } })).toMatch(/this server is not offered here/);
  expect(await refusal({ 'github/owner/name': {} })).toMatch(/github\/owner\/name\.runCmd is needed/);
  expect(await refusal({ 'github/owner/name': { runCmd: 'run', envs: { A: 1 } } })).toMatch(
    /envs must be an object of/,
  );
  expect(await refusal({ 'github/owner/name': { runCmd: 'run', branch: 'main' } })).toMatch(/branch is no setting/);
});
