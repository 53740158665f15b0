import { afterAll, beforeAll, expect, test } from 'bun:test';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeTar } from '../../src/base/write-tar.ts';
import { testResources } from '../node/support/test-node.ts';
import { startBuildNode, step, type BuildNode } from './support/build-node.ts';
import { digestOf, makeImage, pushImage, writeLayout } from './support/oci-image.ts';
import { startRegistry, type TestRegistry } from './support/registry.ts';
import { scratch } from './support/scratch.ts';
import { busyboxTree, distrolessTree, symlink, text } from './support/trees.ts';

let builds: BuildNode;
let open: TestRegistry;
let closed: TestRegistry;
const login = { username: 'robot', password: 'pass:word' };

beforeAll(async () => {
  [builds, open, closed] = await Promise.all([startBuildNode(), startRegistry(), startRegistry(login)]);
  builds.settings({ registries: { [open.host]: { http: true }, [closed.host]: { http: true } } });
}, 600_000);
afterAll(async () => {
  await Promise.all([builds[Symbol.asyncDispose](), open[Symbol.asyncDispose](), closed[Symbol.asyncDispose]()]);
});

const image = (reference: string, credential?: { type: 'registry'; username: string; password: string }) => ({
  kind: 'image' as const,
  reference,
  ...(credential && { credential }),
});

test('layers of every compression, behind a list of machines, with whiteouts', async () => {
  const second = writeTar([
    text('etc/.wh.os-release', ''),
    text('keep/.wh..wh..opq', ''),
    text('keep/new', 'n'),
    symlink('data', 'keep'),
  ]);
  const first = writeTar([text('keep/old', 'o'), text('owned', 'x', { mode: 0o640, uid: 12, gid: 34 })]);
  const made = makeImage(
    [
      { tar: busyboxTree(), compression: 'gzip' },
      { tar: first, compression: 'zstd' },
      { tar: second, compression: 'none' },
    ],
    { env: ['PATH=/usr/bin:/bin', 'LANG=C', 'WITH=a=b'], index: true },
  );
  await pushImage(made, open.host, 'small', 'v1');
  const { result, log } = await builds.build({
    source: image(`${open.host}/small:v1`),
    steps: [
      step(
        'RUN',
        'echo "$LANG:$WITH:$(id -un)"; ls keep /keep /data/ /etc/os-release; stat -c "%u:%g:%a" /owned',
        'root',
      ),
    ],
  });
  expect(result).toMatchObject({ status: 'ready' });
  expect(log).toContain('C:a=b:root');
  expect(log).toContain('/keep:\nnew');
  expect(log).not.toContain('old');
  expect(log).toContain('/etc/os-release: No such file');
  const state = await builds.built({ source: image(`${open.host}/small@${made.root.digest}`) });
  expect(state.env).toEqual({ PATH: '/usr/bin:/bin', LANG: 'C', WITH: 'a=b' });
  expect(
    await builds.inside(state, 'stat -c "%u:%g:%a" /owned; id user; bash -c "echo $BASH_VERSION" | wc -l; cat /.e2b'),
  ).toMatch(/12:34:640\nuid=\d+\(user\)[\s\S]*BUILD_ID=[0-9a-f-]{36}/);
});

test('several layers of an image that hold nothing, or the same', async () => {
  const [empty, mark, other] = [[], [text('mark', '1')], [text('mark', '2')]].map(entries => writeTar(entries));
  const tars = [busyboxTree(), empty, mark, other, empty, mark].map(tar => tar ?? new Uint8Array(0));
  const made = makeImage(tars.map(tar => ({ tar, compression: 'gzip' })));
  await pushImage(made, open.host, 'repeated', 'latest');
  const state = await builds.built({ source: image(`${open.host}/repeated`) });
  expect(await builds.inside(state, 'cat /mark')).toBe('1');
});

test('an image without a shell, and one without anything', async () => {
  await pushImage(
    makeImage([{ tar: distrolessTree(), compression: 'gzip' }], { env: [] }),
    open.host,
    'bare',
    'latest',
  );
  const state = await builds.built({
    source: image(`${open.host}/bare`),
    steps: [step('RUN', 'id -un; [[ -n $BASH_VERSION ]]; ls /app')],
  });
  expect(await builds.inside(state, 'cat /app/hello; ls -d /home/user /code; stat -c %a /tmp')).toContain(
    'hello\n/code\n/home/user\n1777',
  );
});

test('an image with a link or a file in the place of a directory of the platform is refused, and says which', async () => {
  const taken = [
    ['.agent', symlink('.agent', '/tmp')],
    ['dev', text('dev', '')],
    ['proc', symlink('proc', 'nowhere')],
    ['sys', text('sys', 'x')],
  ] as const;
  for (const [index, [name, entry]] of taken.entries()) {
    const made = makeImage([busyboxTree(), writeTar([entry])].map(tar => ({ tar, compression: 'gzip' })));
    await pushImage(made, open.host, 'taken', String(index));
    const { result } = await builds.build({ source: image(`${open.host}/taken:${index}`) });
    const message = expect.stringContaining(`/${name} of the template is a link or a file`) as string;
    expect(result).toMatchObject({ status: 'error', step: 'base', message });
  }
  // Nothing at all, or a directory, is fine.
  const whole = [busyboxTree(), writeTar([text('dev/null', ''), text('sys/x', '')])];
  await pushImage(makeImage(whole.map(tar => ({ tar, compression: 'gzip' }))), open.host, 'taken', 'whole');
  const state = await builds.built({ source: image(`${open.host}/taken:whole`) });
  expect(await builds.inside(state, 'test -c /dev/null && test ! -e /sys/x && echo fine')).toBe('fine\n');
});

test('what could not be installed is tried again by other teams and with more memory', async () => {
  const mirrors = text('sbin/apk', '#!/bin/sh\necho mirrors are down\nexit 1\n', { mode: 0o755, uid: 0, gid: 0 });
  const tars = [busyboxTree(), writeTar([mirrors])];
  await pushImage(makeImage(tars.map(tar => ({ tar, compression: 'gzip' }))), open.host, 'down', 'latest');
  const from = async (request: Parameters<BuildNode['build']>[0]) => {
    const { result, log } = await builds.build({ source: image(`${open.host}/down`), ...request });
    expect(result).toMatchObject({ status: 'ready' });
    expect(log).toContain('what the image lacks could not be installed');
    return log.includes('mirrors are down') ? 'tried' : 'cached';
  };
  const first = { teamId: 'team-1' };
  const resources = { ...testResources, memoryMiB: testResources.memoryMiB * 2 };
  expect([await from(first), await from(first)]).toEqual(['tried', 'cached']);
  expect([await from({ teamId: 'team-2' }), await from({ ...first, resources })]).toEqual(['tried', 'tried']);
  expect(await from({ ...first, force: true })).toBe('tried');
  // An image without a package manager is already final.
  await pushImage(makeImage([{ tar: busyboxTree(), compression: 'gzip' }]), open.host, 'without', 'latest');
  const without = { source: image(`${open.host}/without`) };
  await builds.built(without);
  const { log } = await builds.build({ ...without, teamId: 'team-2' });
  expect(log).toContain('CACHED [base] provisioning');
});

test('a private registry wants credentials, by the build or by the operator', async () => {
  const authorization = `Basic ${btoa(`${login.username}:${login.password}`)}`;
  await pushImage(
    makeImage([{ tar: busyboxTree(), compression: 'gzip' }]),
    closed.host,
    'team/private',
    '1.0',
    authorization,
  );
  const reference = `${closed.host}/team/private:1.0`;
  const without = await builds.build({ source: image(reference) });
  expect(without.result.status === 'error' && without.result.message).toContain('credentials');
  const wrong = await builds.build({
    source: image(reference, { type: 'registry', username: 'robot', password: 'no' }),
  });
  expect(wrong.result.status === 'error' && wrong.result.message).toContain('may not be read with these credentials');
  expect(wrong.log).not.toContain('"no"');
  await builds.built({ source: image(reference, { type: 'registry', ...login }) });
  builds.settings({ registries: { [closed.host]: { http: true, ...login } } });
  await builds.built({ source: image(reference) });
});

test('layers that one team had by its credentials are not had by a list of their digests', async () => {
  const authorization = `Basic ${btoa(`${login.username}:${login.password}`)}`;
  const tars = [busyboxTree(), writeTar([text('secret', 'of team-1')])];
  const made = makeImage(tars.map(tar => ({ tar, compression: 'gzip' })));
  await pushImage(made, closed.host, 'team/secret', '1', authorization);
  // The registry of somebody who knows the digests but has none of the layers.
  await using hearsay = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      const name = new URL(url).pathname.split('/').at(-1) ?? '';
      const bytes = Buffer.from(made.blobs.get(name === '1' ? made.root.digest : name) ?? []);
      return bytes[0] === '{'.charCodeAt(0) ? new Response(bytes) : new Response(null, { status: 404 });
    },
  });
  const stranger = `127.0.0.1:${hearsay.port}`;
  builds.settings({ registries: { [closed.host]: { http: true }, [stranger]: { http: true } } });
  const owner = { source: image(`${closed.host}/team/secret:1`, { type: 'registry' as const, ...login }) };
  const first = await builds.built({ ...owner, teamId: 'team-1' });
  expect(await builds.inside(first, 'cat /secret')).toBe('of team-1');
  expect((await builds.build({ ...owner, teamId: 'team-1' })).log).toContain('CACHED [base] layer 2/2');
  for (const credential of [undefined, { type: 'registry' as const, username: 'x', password: 'y' }]) {
    const { result, log } = await builds.build({ source: image(`${stranger}/x:1`, credential), teamId: 'team-2' });
    expect(result).toMatchObject({ status: 'error', step: 'base' });
    expect(log).not.toContain('CACHED [base] layer 2/2');
  }
});

test('credentials are sent to the registry that they are for, not to what stands in its place', async () => {
  const authorization = `Basic ${btoa(`${login.username}:${login.password}`)}`;
  const made = makeImage([{ tar: busyboxTree(), compression: 'gzip' }]);
  await pushImage(made, closed.host, 'library/mirrored', '1', authorization);
  const credential = { type: 'registry' as const, username: 'tenant', password: 'own' };
  const registries = { [closed.host]: { http: true, ...login } };
  for (const settings of [
    { mirrors: { 'docker.io': closed.host } },
    { images: { 'mirrored:1': `${closed.host}/library/mirrored:1` } },
  ]) {
    builds.settings({ ...settings, registries });
    const { result, log } = await builds.build({ source: image('mirrored:1', credential) });
    expect(result).toMatchObject({ status: 'ready' });
    expect(log).toContain(`the credentials are for docker.io and not sent to ${closed.host}`);
  }
});

test('a registry may send to another server for tokens', async () => {
  await using registry = await startRegistry(login, { tokens: true });
  const realm = new URL(
    (await fetch(`http://${registry.host}/v2/`)).headers.get('www-authenticate')?.match(/realm="([^"]+)"/)?.[1] ?? '',
  );
  const scope = (actions: string) => `${realm}?service=test&scope=repository:team/tool:${actions}`;
  const { token } = (await (
    await fetch(scope('pull,push'), {
      headers: { authorization: `Basic ${btoa(`${login.username}:${login.password}`)}` },
    })
  ).json()) as { token: string };
  await pushImage(
    makeImage([{ tar: busyboxTree(), compression: 'gzip' }]),
    registry.host,
    'team/tool',
    '1',
    `Bearer ${token}`,
  );
  // Both are on this machine: the operator allows them.
  builds.settings({ registries: { [registry.host]: { http: true }, [realm.host]: { http: true } } });
  const reference = `${registry.host}/team/tool:1`;
  expect((await builds.build({ source: image(reference) })).result.status).toBe('error');
  await builds.built({ source: image(reference, { type: 'registry', ...login }) });
  expect(
    (await builds.build({ source: image(reference, { type: 'registry', username: 'robot', password: 'no' }) })).result
      .status,
  ).toBe('error');
});

test('a service account is the password of a registry that takes its key', async () => {
  const serviceAccountJson = JSON.stringify({ type: 'service_account', project_id: 'p' });
  const account = { username: '_json_key', password: serviceAccountJson };
  await using registry = await startRegistry(account);
  await pushImage(
    makeImage([{ tar: busyboxTree(), compression: 'gzip' }]),
    registry.host,
    'p/tool',
    '1',
    `Basic ${btoa(`${account.username}:${account.password}`)}`,
  );
  builds.settings({ registries: { [registry.host]: { http: true } } });
  const source = { kind: 'image' as const, reference: `${registry.host}/p/tool:1` };
  expect((await builds.build({ source })).result.status).toBe('error');
  await builds.built({ source: { ...source, credential: { type: 'gcp', serviceAccountJson } } });
});

test('names stand for what the operator says: archives, layouts, mirrors', async () => {
  using dir = scratch();
  const made = makeImage(
    [
      { tar: busyboxTree(), compression: 'gzip' },
      { tar: writeTar([text('mark', 'layout')]), compression: 'zstd' },
    ],
    { index: true },
  );
  writeLayout(made, join(dir.path, 'layout'));
  Bun.spawnSync(['tar', '-C', join(dir.path, 'layout'), '-czf', join(dir.path, 'layout.tar.gz'), '.']);
  writeFileSync(join(dir.path, 'saved.tar'), dockerSave([busyboxTree(), writeTar([text('mark', 'saved')])]));
  await pushImage(
    makeImage([
      { tar: busyboxTree(), compression: 'gzip' },
      { tar: writeTar([text('mark', 'mirror')]), compression: 'gzip' },
    ]),
    open.host,
    'library/alpine',
    '3',
  );
  builds.settings({
    images: {
      'ubuntu:22.04': join(dir.path, 'layout'),
      'docker.io/library/debian:latest': join(dir.path, 'layout.tar.gz'),
      'example.com/saved:1': join(dir.path, 'saved.tar'),
      'gone:1': join(dir.path, 'nothing.tar'),
    },
    mirrors: { 'docker.io': open.host },
    registries: { [open.host]: { http: true } },
  });
  for (const [name, mark] of [
    ['ubuntu:22.04', 'layout'],
    ['debian', 'layout'],
    ['example.com/saved:1', 'saved'],
    ['alpine:3', 'mirror'],
  ] as const) {
    const state = await builds.built({ source: image(name) });
    expect(await builds.inside(state, 'cat /mark')).toBe(mark);
  }
  const gone = await builds.build({ source: image('gone:1') });
  expect(gone.result.status === 'error' && gone.result.message).toContain('is not on this node');
});

test('content that is not what its digest says is refused', async () => {
  using dir = scratch();
  const made = makeImage([{ tar: writeTar([text('only', 'here'.repeat(1000))]), compression: 'none' }]);
  const layer = [...made.blobs].sort(([, a], [, b]) => b.length - a.length)[0];
  if (!layer) throw new Error('no layer');
  const layout = join(dir.path, 'broken');
  writeLayout(made, layout);
  const changed = Buffer.from(layer[1]);
  changed[600] = (changed[600] ?? 0) ^ 1;
  writeFileSync(join(layout, 'blobs/sha256', layer[0].slice('sha256:'.length)), changed);
  builds.settings({ images: { 'broken:1': layout } });
  const { result } = await builds.build({ source: image('broken:1') });
  expect(result.status === 'error' && result.message).toContain('not what its digest says');
});

test.each([
  ['a name with ..', [text('../../../../tmp/atoll-escaped', 'x')]],
  ['a file through a link to ..', [symlink('up', '../../../../../../..'), text('up/tmp/atoll-escaped', 'x')]],
  ['a file through an absolute link', [symlink('up', '/tmp'), text('up/atoll-escaped', 'x')]],
])('an image with %s writes nothing outside', async (_, entries) => {
  using dir = scratch();
  writeLayout(
    makeImage([
      { tar: busyboxTree(), compression: 'none' },
      { tar: writeTar(entries), compression: 'gzip' },
    ]),
    join(dir.path, 'hostile'),
  );
  builds.settings({ images: { 'hostile:1': join(dir.path, 'hostile') } });
  await builds.build({ source: image('hostile:1') });
  expect(readdirSync('/tmp')).not.toContain('atoll-escaped');
  expect(readdirSync('/')).not.toContain('atoll-escaped');
});

test('addresses that builds may not reach are not asked, whatever the name', async () => {
  builds.settings({});
  for (const reference of [
    `${open.host}/small:v1`,
    'localhost/x',
    '169.254.169.254/latest/meta-data',
    '10.0.0.1:5000/x',
  ]) {
    const { result } = await builds.build({ source: image(reference) });
    expect(result).toMatchObject({ status: 'error', step: 'base' });
    expect(result.status === 'error' && result.message).toContain('may not reach');
  }
});

test('what is no image name is refused', async () => {
  for (const reference of ['UPPER/case', 'a b', 'x@sha256:12', '../x', '']) {
    const { result } = await builds.build({ source: image(reference) });
    expect(result.status === 'error' && result.message).toContain('is not the name of an image');
  }
});

/** The output of `docker save` for an image of these layers. */
function dockerSave(layers: Uint8Array[]): Uint8Array {
  const config = JSON.stringify({
    architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
    os: 'linux',
    config: { Env: ['A=b'] },
    rootfs: { type: 'layers', diff_ids: layers.map(digestOf) },
  });
  const name = `${digestOf(config).slice('sha256:'.length)}.json`;
  const manifest = JSON.stringify([
    { Config: name, RepoTags: ['saved:1'], Layers: layers.map((_, index) => `l${index}/layer.tar`) },
  ]);
  const entry = (path: string, content: Uint8Array) => ({
    path,
    type: 'file' as const,
    attributes: { mode: 0o644, uid: 0, gid: 0 },
    content,
  });
  return writeTar([
    entry(name, Buffer.from(config)),
    entry('manifest.json', Buffer.from(manifest)),
    ...layers.map((layer, index) => entry(`l${index}/layer.tar`, layer)),
  ]);
}
