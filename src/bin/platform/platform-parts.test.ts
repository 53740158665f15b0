import { afterEach, beforeEach, expect, test } from 'bun:test';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { apiFolders, apiKeyFile } from '../../api/installation/data-directory.ts';
import { readFacts } from '../../api/installation/facts.ts';
import { shippedBuildsFile } from '../../api/shipped/builds.ts';
import { commandOfProgram } from '../../base/process/own-program.ts';
import type { PartGroups } from '../../supervisor/control-groups.ts';
import type { PartName } from '../../supervisor/part-process.ts';
import type { Part, PartOptions } from '../../supervisor/part.ts';
import { RestartCounts } from '../../supervisor/restart-counts.ts';
import { socketsIn } from '../parts/sockets.ts';
import { readSettings } from '../settings/settings.ts';
import { beginApi, beginEdge, beginGate, beginNode, type BeginPart } from './platform-parts.ts';

let dataDir: string;
beforeEach(() => void (dataDir = mkdtempSync(join(tmpdir(), 'atoll-parts-'))));
afterEach(() => rmSync(dataDir, { recursive: true }));

type Begun = Partial<PartOptions<unknown>> &
  Pick<PartOptions<unknown>, 'name' | 'command' | 'environment' | 'settings'>;

/** How a part is begun; nothing is started. */
function begun(begin: (with_: BeginPart) => Part<unknown>): Begun {
  const all: Begun[] = [];
  begin(own => {
    all.push(own as Begun);
    return { ready: new Promise(() => {}), update() {}, stop: async () => {} };
  });
  expect(all).toHaveLength(1);
  return all[0] as Begun;
}

const groups = { joinFiles: (name: PartName) => [`/groups/${name}`] } as PartGroups<PartName>;
const identity = { nodeId: 'n1', seed: new Uint8Array(32), adminToken: 'admin', metricsToken: 'metrics' };
const common = (more: Record<string, string> = {}, environment: Record<string, string> = { PATH: '/bin' }) => ({
  ...{ environment, identity, groups },
  settings: readSettings({ ATOLL_DATA_DIR: dataDir, ...more }),
});
const place = () => ({ installation: 3, runDir: join(dataDir, 'run') });
const ask = (part: Begun, what: string, value: unknown = null) => part.onAsk?.(what, value);
const unknown = { code: 'unimplemented', message: 'nobody may ask for more' };

test('the node is root’s, and says when the data directory is its own', async () => {
  const claimed: unknown[] = [];
  const waits = Promise.withResolvers<void>();
  const part = begun(begin =>
    beginNode(begin, common(), {
      isForGate: true,
      onClaimed(found) {
        claimed.push(found);
        return waits.promise;
      },
    }),
  );
  const command = part.command();
  expect([part.name, command.slice(-commandOfProgram('node').length)]).toEqual(['node', commandOfProgram('node')]);
  expect(command).toContain('/groups/node');
  expect(command).not.toContain('--no-new-privs');
  expect(part.environment).toEqual({ PATH: '/bin' });
  const settings = (await part.settings()) as { nodeId: string; isForGate: boolean; programs: { agentDir: string } };
  expect(settings).toMatchObject({ nodeId: 'n1', isForGate: true });
  // The same however often it is restarted: set-up may have built others meanwhile.
  expect(((await part.settings()) as typeof settings).programs).toBe(settings.programs);
  let isAnswered = false;
  const answer = ask(part, 'others', place())?.then(() => (isAnswered = true));
  await Promise.resolve();
  expect([claimed, isAnswered]).toEqual([[place()], false]);
  waits.resolve();
  await answer;
  await expect(ask(part, 'more')).rejects.toMatchObject(unknown);
});

function api(also: Partial<Parameters<typeof beginApi>[3]> = {}, given = common()) {
  const failed: string[] = [];
  const restarts = new RestartCounts();
  const options = {
    ...{ pair: null, restarts, nodeServes: Promise.resolve(), fail: (error: Error) => void failed.push(error.message) },
    ...also,
  };
  return { part: begun(begin => beginApi(begin, given, place(), options) as Part<unknown>), failed, restarts };
}

test('the api has the settings of its start, and what is kept for it', async () => {
  const { part } = api();
  expect(await part.settings()).toMatchObject({
    ...{ identity, pair: null, installation: 3, runDir: join(dataDir, 'run'), oidc: null, storePlace: undefined },
    ...{ apiKey: undefined, shippedBuilds: undefined },
  });
  writeFileSync(apiKeyFile(dataDir), 'key');
  writeFileSync(join(dataDir, shippedBuildsFile), 'builds');
  expect(await part.settings()).toMatchObject({ apiKey: 'key', shippedBuilds: 'builds', pair: null });
});

test('what the first start has found of the database is for the first start alone', async () => {
  const pair = { kind: 'first found' } as never;
  const { part } = api({ pair });
  expect(((await part.settings()) as { pair: unknown }).pair).toBe(pair);
  expect(((await part.settings()) as { pair: { kind: string } }).pair.kind).toBe('new');
});

test('the api sees its own folders and no more, and gives up its rights', () => {
  const { part } = api();
  const command = part.command();
  const data = socketsIn(place().runDir).data;
  for (const name of apiFolders) expect(command.join(' ')).toContain(`${join(dataDir, name)} ${join(data, name)}`);
  expect(command).toContain('--no-new-privs');
  expect(command.slice(-commandOfProgram('api').length)).toEqual(commandOfProgram('api'));
  const confined = api({ isConfined: true }).part.command();
  expect([confined.includes('unshare'), confined.includes('/groups/api')]).toEqual([false, true]);
});

test('a store that is a directory is shown to the api where it looks for it', () => {
  const path = join(dataDir, 'shared');
  mkdirSync(path);
  const at = socketsIn(place().runDir).store;
  const command = api({ storePlace: { kind: 'directory', path } as never }).part.command();
  expect(command[command.indexOf(at) - 1]).toStartWith(path);
  expect(statSync(at).mode & 0o777).toBe(0o700);
  const bucket = { kind: 's3', bucket: 'b', prefix: '' } as never;
  expect(api({ storePlace: bucket }).part.command()).not.toContain(at);
});

test('the api gets only the environment variables that concern its connections', () => {
  const environment = {
    ...{ PATH: '/bin', https_proxy: 'p', NO_PROXY: 'n', SSL_CERT_FILE: 'f', PGPASSWORD: 'w', TZ: 'UTC' },
    ...{ ATOLL_PORT: '1', SECRET: 's', HOME: '/root', MY_PROXY: 'x', PGpassword_2: 'y' },
  };
  const { part } = api({}, common({}, environment));
  expect(Object.keys(part.environment).sort()).toEqual(
    ['PATH', 'https_proxy', 'NO_PROXY', 'SSL_CERT_FILE', 'PGPASSWORD', 'TZ'].sort(),
  );
});

test('what the api asks for is done in the data directory', async () => {
  const served = Promise.withResolvers<void>();
  const { part, failed } = api({ nodeServes: served.promise });
  const facts = { installationId: 'i', nodeId: 'n', seedDigest: 's', database: 'sqlite', generation: 4 };
  expect(await ask(part, 'installation facts', facts)).toBeUndefined();
  expect(readFacts(dataDir)).toEqual(facts as never);
  await ask(part, 'shipped templates', 'text');
  expect(readFileSync(join(dataDir, shippedBuildsFile), 'utf8')).toBe('text');
  await ask(part, 'end', 'another database');
  expect(failed).toEqual(['another database']);
  let serves = false;
  const waiting = ask(part, 'node')?.then(() => (serves = true));
  await Promise.resolve();
  expect(serves).toBe(false);
  served.resolve();
  await waiting;
  await expect(ask(part, 'more')).rejects.toMatchObject(unknown);
});

test('the first key is kept for root alone, and one that was revoked is replaced', () => {
  const { part } = api();
  const kept = () => readFileSync(apiKeyFile(dataDir), 'utf8').trim();
  for (const apiKey of ['first', 'first', 'second']) {
    part.onReady?.({ apiKey });
    expect([kept(), statSync(apiKeyFile(dataDir)).mode & 0o077]).toEqual([apiKey, 0]);
  }
});

test('what the api says of itself is a key, names and a path, each on one line', () => {
  const { part } = api();
  const about = { apiKey: 'e2b_0', building: ['code-interpreter-v1'], signInPath: '/dashboard/signin#0' };
  expect(part.readAbout?.(about)).toEqual(about);
  expect(part.readAbout?.({ ...about, signInPath: null })).toEqual({ ...about, signInPath: null });
  for (const wrong of [{ apiKey: {} }, { apiKey: 'a\nb' }, { building: 'all' }, { signInPath: '\u001b[2J' }])
    expect(() => part.readAbout?.({ ...about, ...wrong })).toThrow('what it says');
  expect(() => part.readAbout?.(null)).toThrow('what it says');
});

test('the edge waits for what its ports lead to, and keeps its ports', async () => {
  const certificate = { current: { cert: 'c' } } as never;
  const served = Promise.withResolvers<never>();
  const part = begun(
    begin => beginEdge(begin, common({ ATOLL_PORT: '0', ATOLL_TLS_PORT: '0' }), served.promise) as never,
  );
  expect([part.environment, part.command().includes('--no-new-privs')]).toEqual([{}, true]);
  served.resolve({ ...place(), certificate, isControl: true } as never);
  expect(await part.settings()).toMatchObject({
    ...{ installation: 3, runDir: place().runDir, isControl: true, port: 0 },
    tls: { port: 0, certificate: { cert: 'c' } },
  });
  part.onReady?.({ port: 4000, tlsPort: 4443 });
  expect(await part.settings()).toMatchObject({ port: 4000, tls: { port: 4443 } });
  for (const wrong of [
    null,
    {},
    { port: '4000', tlsPort: null },
    { port: 0, tlsPort: null },
    { port: 70_000, tlsPort: 1 },
  ])
    expect(() => part.readAbout?.(wrong)).toThrow('what it says');
  part.onReady?.({ port: 4000, tlsPort: null });
  expect(await part.settings()).toMatchObject({ tls: { port: 4443 } });
});

test('without a certificate, or without a port for it, there is no TLS', async () => {
  const tlsOf = async (variables: Record<string, string>, certificate: unknown) => {
    const surroundings = { ...place(), certificate, isControl: false };
    const part = begun(begin => beginEdge(begin, common(variables), Promise.resolve(surroundings as never)) as never);
    return ((await part.settings()) as { tls: unknown }).tls;
  };
  expect(await tlsOf({ ATOLL_TLS_PORT: '0' }, undefined)).toBeUndefined();
  expect(await tlsOf({}, { current: {} })).toBeUndefined();
});

test('the gate has what it is given, and hands on its certificates', async () => {
  const kept: unknown[] = [];
  const part = begun(begin =>
    beginGate(
      begin,
      { groups },
      () => ({ port: 1 }) as never,
      next => kept.push(next),
    ),
  );
  expect([part.name, part.environment, part.settings()]).toEqual(['gate', {}, { port: 1 }]);
  expect(part.command()).toContain('/groups/gate');
  const next = { certificate: 'c', key: 'k', authority: 'a' };
  expect(await ask(part, 'certificate', { ...next, more: 1 })).toBeUndefined();
  for (const wrong of [null, 'c', { ...next, key: 1 }])
    await expect(ask(part, 'certificate', wrong)).rejects.toMatchObject({ code: 'invalid' });
  expect(kept).toEqual([next]);
  await expect(ask(part, 'more')).rejects.toMatchObject(unknown);
});
