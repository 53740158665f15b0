import { afterEach, beforeEach, expect, test } from 'bun:test';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tryCommand } from '../../../base/process/command.ts';
import type { RegistryCredential } from '../../../protocol/build.ts';
import type { BuilderJob, BuilderQuestion } from '../../../protocol/builder.ts';
import type { Builder } from '../../builder/builder.ts';
import { createLayers } from '../../layers/store.ts';
import type { Helper } from '../../native/helper.ts';
import { tableOf } from '../../network/rules/table-name.ts';
import { createBuildBytes } from '../build-bytes.ts';
import type { Build } from '../build.ts';
import { createStepCache } from '../cache/step-cache.ts';
import { pullImage } from './pull.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'atoll-pull-'));
  mkdirSync(join(dir, 'scratch'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const digestOf = (text: string | Buffer) => `sha256:${createHash('sha256').update(text).digest('hex')}`;
const own: RegistryCredential = { type: 'registry', username: 'u', password: 'p' };
/** A number that no platform on this machine can have. */
const installation = 900 + (process.pid % 90);

type Ran = {
  job: BuilderJob;
  shows?: Record<string, string>;
  reply?(question: BuilderQuestion): Promise<string[]>;
  signal?: AbortSignal;
};

/**
 * A node whose builder has an image with these blobs: the layer of a blob is its text with a mark before it. `damaged`
 * is what arrives instead of a blob.
 */
function node(blobs: string[], settings: object = {}) {
  const ran: Ran[] = [];
  const said: string[] = [];
  const damaged = new Map<string, string | Error>();
  const state = {
    underWay: 0,
    most: 0,
    gate: (_digest: string) => Promise.resolve(),
    ask: undefined as string | undefined,
    addresses: undefined as unknown,
  };
  const image = {
    digest: digestOf('image'),
    env: { FROM: 'image' },
    layers: blobs.map(blob => ({ digest: digestOf(blob), size: 1_500_000, diffId: digestOf(`diff ${blob}`) })),
  };
  const fetchBlob = async (digest: string, output: string) => {
    state.most = Math.max(state.most, ++state.underWay);
    await state.gate(digest);
    state.underWay--;
    const blob = blobs.find(blob => digestOf(blob) === digest) ?? '';
    const content = damaged.get(blob) ?? blob;
    if (content instanceof Error) throw content;
    writeFileSync(output, content);
  };
  const run = async (task: Ran & { input?: string; output?: string }): Promise<unknown> => {
    const { job, input = '', output = '' } = task;
    ran.push(task);
    switch (job.kind) {
      case 'file-image':
        return { image, version: digestOf('version') };
      case 'registry-image':
        if (state.ask !== undefined)
          state.addresses = await task
            .reply?.({ resolve: { host: state.ask, isSecure: true } })
            .catch((error: unknown) => error);
        return { image, login: { username: 'found', password: 'p' }, authorization: 'Bearer x' };
      case 'file-blob':
      case 'registry-blob':
        return fetchBlob(job.digest, output);
      case 'import': {
        const text = readFileSync(input, 'utf8');
        if (text === 'empty') return null;
        writeFileSync(output, `layer of ${text}`);
        return { bytes: 1, inodes: 1 };
      }
      default:
        throw new Error(`no builder does ${job.kind} here`);
    }
  };
  const settingsFile = join(dir, 'images.json');
  writeFileSync(settingsFile, JSON.stringify(settings));
  const layers = createLayers({ helper: {} as Helper, dir: join(dir, 'layers'), mounts: join(dir, 'mounts') });
  const bytes = createBuildBytes({ perBuild: 1000, perTeam: 1000, windowMs: 1000 }, () => 0).begin('a-team');
  const required: unknown[] = [];
  const cache = createStepCache(join(dir, 'cache'), layers.has);
  const cancelled = new AbortController();
  const build = (teamId: string) =>
    ({
      request: { teamId },
      builder: { run } as unknown as Builder,
      layers,
      bytes,
      cache,
      layout: { installation },
      limits: {},
      space: {
        require: (what: string, size?: number) => required.push([what, size]),
        signal: () => new AbortController().signal,
      },
      signal: cancelled.signal,
      log: (line: string) => said.push(line),
    }) as unknown as Build;
  const pull = (text: string, credential?: RegistryCredential, teamId = 'a-team') =>
    pullImage(build(teamId), { settingsFile, scratchDir: join(dir, 'scratch'), authorities: 'PEM' }, text, credential);
  const jobs = (kind: string) => ran.map(({ job }) => job).filter(job => job.kind === kind);
  const layerOf = (blob: string) => digestOf(`layer of ${blob}`);
  return { pull, jobs, ran, said, damaged, state, image, required, layers, layerOf, bytes, cancelled };
}

test('an image is the state that its layers and its environment are, as root', async () => {
  const it = node(['a', 'empty', 'b']);
  expect(await it.pull('debian:12')).toEqual({
    layers: [it.layerOf('a'), it.layerOf('b')],
    env: expect.objectContaining({ FROM: 'image' }) as Record<string, string>,
    user: 'root',
    workdir: '',
  });
  expect(it.said[0]).toBe('[base] FROM debian:12');
  expect(it.said.slice(1).sort()).toEqual([1, 2, 3].map(index => `[base] layer ${index}/3, 1.5 MB`));
  expect(readdirSync(join(dir, 'scratch'))).toEqual([]);
  expect(it.required).toContainEqual(['a layer of the image', 1_500_000]);
  // The bytes transferred and the bytes of the layers made from them.
  const made = ['a', 'b'].reduce((sum, blob) => sum + blob.length + `layer of ${blob}`.length, 'empty'.length);
  expect(it.bytes.left()).toBe(1000 - made);
});

test('a registry is asked as it is named, and for its blobs with what it was found with', async () => {
  const it = node(['a']);
  await it.pull('registry.test:5000/team/app:1', own);
  const access = {
    host: 'registry.test:5000',
    repository: 'team/app',
    name: 'registry.test:5000/team/app:1',
    http: false,
    authorities: 'PEM',
  };
  expect(it.jobs('registry-image')).toEqual([{ kind: 'registry-image', access, version: '1', credential: own }]);
  expect(it.jobs('registry-blob')).toEqual([
    {
      kind: 'registry-blob',
      access: { ...access, login: { username: 'found', password: 'p' }, authorization: 'Bearer x' },
      digest: digestOf('a'),
      bytesMax: 1000,
    },
  ] as unknown as BuilderJob[]);
  const docker = node([]);
  await docker.pull('debian');
  expect(docker.jobs('registry-image')).toMatchObject([
    { access: { host: 'registry-1.docker.io', repository: 'library/debian' }, version: 'latest' },
  ]);
  expect(docker.jobs('registry-image')[0]).not.toHaveProperty('credential');
});

test('the operator says how a registry is reached, and only the one that was named gets the credential', async () => {
  const it = node([], {
    mirrors: { 'docker.io': 'mirror.test' },
    registries: { 'mirror.test': { http: true, username: 'operator' } },
  });
  await it.pull('debian', { ...own, password: 'secret' });
  expect(it.jobs('registry-image')).toMatchObject([
    { access: { host: 'mirror.test', http: true, login: { username: 'operator', password: '' } } },
  ]);
  expect(JSON.stringify(it.jobs('registry-image'))).not.toContain('secret');
  expect(it.said[1]).toBe(
    '[base] the credentials are for docker.io and not sent to mirror.test, which the operator has put in its place',
  );
});

test('an image of a file is read from where the file is', async () => {
  const path = join(dir, 'image.tar');
  writeFileSync(path, '');
  symlinkSync(path, join(dir, 'link.tar'));
  const it = node(['a'], { images: { 'own:1': join(dir, 'link.tar'), 'none:1': join(dir, 'none.tar') } });
  expect((await it.pull('own:1', own)).layers).toEqual([it.layerOf('a')]);
  expect(it.ran.slice(0, 2).map(({ shows }) => shows)).toEqual([{ image: path }, { image: path }]);
  expect(it.jobs('file-blob')).toMatchObject([{ version: digestOf('version'), digest: digestOf('a'), bytesMax: 1000 }]);
  await expect(it.pull('none:1')).rejects.toMatchObject({ code: 'not_found' });
});

test('layers that were fetched are not fetched again, but those that took a credential only for its team', async () => {
  const it = node(['a', 'b']);
  await it.pull('debian');
  expect(it.jobs('registry-blob')).toHaveLength(2);
  await it.pull('debian', undefined, 'another');
  expect(it.jobs('registry-blob')).toHaveLength(2);
  expect(it.said.slice(-2).sort()).toEqual(['CACHED [base] layer 1/2', 'CACHED [base] layer 2/2']);
  await it.pull('debian', own);
  expect(it.jobs('registry-blob')).toHaveLength(4);
  await it.pull('debian', own);
  expect(it.jobs('registry-blob')).toHaveLength(4);
  await it.pull('debian', own, 'another');
  expect(it.jobs('registry-blob')).toHaveLength(6);
});

test('a slow registry keeps no build waiting that fetches the same layer from another one', async () => {
  const it = node(['a']);
  const slow = Promise.withResolvers<void>();
  it.state.gate = () => slow.promise;
  const held = it.pull('slow.test/own');
  while (it.state.underWay === 0) await Bun.sleep(1);
  it.state.gate = () => Promise.resolve();
  expect((await it.pull('debian', undefined, 'another')).layers).toEqual([it.layerOf('a')]);
  expect(it.jobs('registry-blob').map(job => (job as { access?: { host: string } }).access?.host)).toEqual([
    'slow.test',
    'registry-1.docker.io',
  ]);
  slow.resolve();
  await held;
});

test('three layers are fetched at a time', async () => {
  const it = node(['a', 'b', 'c', 'd', 'e', 'f']);
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  it.state.gate = () => opened;
  const pulled = it.pull('debian');
  while (it.state.underWay < 3) await Bun.sleep(1);
  open();
  await pulled;
  expect(it.state.most).toBe(3);
});

test('a layer that is not what its digest says, or can’t be had, ends the pull and leaves nothing', async () => {
  const wrong = node(['a', 'b']);
  wrong.damaged.set('b', 'another');
  await expect(wrong.pull('debian')).rejects.toMatchObject({
    code: 'invalid',
    message: 'a layer of the image is not what its digest says',
  });
  expect(readdirSync(join(dir, 'scratch'))).toEqual([]);
  const failing = node(['c', 'd', 'e', 'f', 'g', 'h', 'i']);
  failing.damaged.set('c', new Error('the registry is away'));
  await expect(failing.pull('debian')).rejects.toThrow('the registry is away');
  // The failing job aborts the others under way, and begins no more.
  const signals = failing.ran.filter(({ job }) => job.kind === 'registry-blob').map(({ signal }) => signal?.aborted);
  expect(signals).not.toContain(false);
});

test('a build that is cancelled ends what is fetched for it', async () => {
  const it = node(['a']);
  await it.pull('debian');
  const fetched = it.ran.find(({ job }) => job.kind === 'registry-blob');
  it.cancelled.abort();
  expect(fetched?.signal?.aborted).toBe(true);
});

test('addresses of public registries are found, and private ones where the operator says so', async () => {
  const it = node([]);
  it.state.ask = '8.8.8.8';
  await it.pull('debian');
  expect(it.state.addresses).toEqual(['8.8.8.8']);
  it.state.ask = '10.0.0.1';
  await it.pull('debian');
  expect(it.state.addresses).toMatchObject({ code: 'forbidden' });
});

test('builders may reach the addresses of a private registry, at its port', async () => {
  const table = `inet ${tableOf(installation)}`;
  const nft = (command: string) => tryCommand(['nft', ...command.split(' ')]);
  await nft(`add table ${table}`);
  try {
    await nft(`add set ${table} builder_hosts { type ipv4_addr . inet_service ; flags timeout ; timeout 1h ; }`);
    for (const [host, expected] of [
      ['10.0.0.1', '10.0.0.1 . 443'],
      ['10.0.0.2:5000', '10.0.0.2 . 5000'],
    ] as const) {
      const it = node([], { registries: { [host]: { private: true } } });
      it.state.ask = host;
      await it.pull('debian');
      expect(it.state.addresses).toEqual([host.split(':')[0]]);
      expect(await nft(`list set ${table} builder_hosts`)).toContain(expected);
    }
    const open = node([], { registries: { '8.8.4.4': { username: 'u' } } });
    open.state.ask = '8.8.4.4';
    await open.pull('debian');
    expect(await nft(`list set ${table} builder_hosts`)).not.toContain('8.8.4.4');
  } finally {
    await nft(`delete table ${table}`);
  }
});
