import { expect, test } from 'bun:test';
import { sha256Hex } from '../../base/crypto/secret.ts';
import { imageLayersMax } from '../../protocol/builder.ts';
import { readImage } from './manifest.ts';

const here = process.arch === 'arm64' ? 'arm64' : 'amd64';
const digestOf = (bytes: Uint8Array | string) => `sha256:${sha256Hex(bytes)}`;
const digest = (letter: string) => `sha256:${letter.repeat(64)}`;

/** A store that holds what is put into it, by digest, and by tag if one is given. */
function emptyStore() {
  const kept = new Map<string, Uint8Array>();
  const put = (value: unknown, name?: string): string => {
    const bytes = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
    const own = name ?? digestOf(bytes);
    kept.set(own, bytes);
    return own;
  };
  const manifest = (version: string) => Promise.resolve(kept.get(version) ?? Buffer.from('?'));
  const blob = (version: string) => Promise.resolve(inTwo(kept.get(version) ?? Buffer.from('?')));
  return { put, store: { manifest, blob } };
}

async function* inTwo(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes.subarray(0, 5);
  yield bytes.subarray(5);
  await Promise.resolve();
}

const goodConfig = { config: { Env: ['PATH=/bin'] }, rootfs: { diff_ids: [digest('d')] } };
const goodLayers: unknown = [{ digest: digest('1'), size: 10 }];

/** The result for an image with this configuration and these layers. */
function imageOf({ config = goodConfig as unknown, layers = goodLayers, more = {} } = {}) {
  const { put, store } = emptyStore();
  put({ config: { digest: put(config) }, layers, ...more }, 'latest');
  return readImage(store, 'latest');
}
const invalid = (message: string) =>
  expect.objectContaining({ code: 'invalid', message: expect.stringContaining(message) });
const isRefused = (image: Promise<unknown>, message: string) => expect(image).rejects.toEqual(invalid(message));

test('an image is its layers with their sizes, and the environment that it sets', async () => {
  const { put, store } = emptyStore();
  const config = {
    config: { Env: ['PATH=/bin', 'A=b=c', 'EMPTY=', 'none', '=x'] },
    rootfs: { diff_ids: [digest('d'), digest('e')] },
  };
  const layers = [
    { digest: digest('1'), size: 10 },
    { digest: digest('2'), size: 20 },
  ];
  const name = put({ config: { digest: put(config) }, layers });
  expect(await readImage(store, name)).toEqual({
    digest: name,
    env: { PATH: '/bin', A: 'b=c', EMPTY: '' },
    layers: [
      { digest: digest('1'), size: 10, diffId: digest('d') },
      { digest: digest('2'), size: 20, diffId: digest('e') },
    ],
  });
});

test('an image without environment or layers is one too', async () => {
  for (const config of [{ rootfs: { diff_ids: [] } }, { config: { Env: null } }, { config: {} }])
    expect(await imageOf({ config, layers: [] })).toMatchObject({ env: {}, layers: [] });
});

test.each([undefined, -1, 1.5, 'big', 2 ** 60])('a layer of size %p has none that is known', async size => {
  const { layers } = await imageOf({ layers: [{ digest: digest('1'), size }] });
  expect(layers[0]?.size).toBe(0);
});

test('of a list, the image for this machine is taken, also through lists of lists', async () => {
  const { put, store } = emptyStore();
  const name = put({ config: { digest: put(goodConfig) }, layers: goodLayers });
  const other = digest('0');
  const lists = [
    [
      { digest: other, platform: { architecture: 'mips' } },
      { digest: name, platform: { architecture: here } },
    ],
    [
      { digest: other, platform: { architecture: here, os: 'windows' } },
      { digest: other },
      { digest: name, platform: { architecture: here, os: 'linux' } },
    ],
    // A single image serves any platform.
    [{ digest: name }],
  ];
  for (const manifests of lists) expect((await readImage(store, put({ manifests }))).digest).toBe(name);
  let nested = name;
  for (let depth = 0; depth < 4; depth++) nested = put({ manifests: [{ digest: nested }] });
  expect((await readImage(store, nested)).digest).toBe(name);
  await isRefused(
    readImage(store, put({ manifests: [{ digest: nested }] })),
    'no manifest of a kind that is supported',
  );
});

test.each([
  [[]],
  [[{ digest: digest('0'), platform: { architecture: 'mips' } }]],
  [[{ digest: digest('0') }, { digest: digest('1') }]],
  [[{ digest: digest('0'), platform: { architecture: here, os: 'windows' } }]],
])('a list without an image for this machine is refused: %j', async manifests => {
  const { put, store } = emptyStore();
  await isRefused(readImage(store, put({ manifests })), `not made for linux/${here}`);
});

test('content that does not match its digest is refused', async () => {
  const { put, store } = emptyStore();
  const config = put(goodConfig);
  const forged = put({ config: { digest: config }, layers: goodLayers }, digest('a'));
  await isRefused(readImage(store, forged), 'not the one that its digest names');
  await isRefused(readImage(store, put({ manifests: [{ digest: forged }] })), 'not the one that its digest names');
  put({ ...goodConfig, config: { Env: ['LD_PRELOAD=x'] } }, config);
  const honest = put({ config: { digest: config }, layers: goodLayers });
  await isRefused(readImage(store, honest), 'not what its digest says');
});

test.each(['sha256:abc', 'sha512:' + 'a'.repeat(64), `${digest('a')}0`, digest('A'), undefined, 7])(
  'nothing is named by %p',
  async named => {
    await isRefused(imageOf({ layers: [{ digest: named }] }), 'by a digest that is not SHA-256');
    await isRefused(imageOf({ config: { rootfs: { diff_ids: [named ?? null] } } }), 'digests that are not SHA-256');
  },
);

test('an image of another form is refused', async () => {
  const { put, store } = emptyStore();
  for (const text of ['{', 'null', '7', '"text"']) {
    await isRefused(readImage(store, put(text)), 'the manifest of the image is not JSON');
    await isRefused(imageOf({ config: text }), 'the configuration of the image is not JSON');
  }
  await isRefused(readImage(store, put({ schemaVersion: 1, fsLayers: [] })), 'schema 1 is not');
  await isRefused(readImage(store, put({ config: {}, layers: [] })), 'schema 1 is not');
  await isRefused(imageOf({ layers: {} }), 'schema 1 is not');
  await isRefused(imageOf({ layers: [null] }), 'has a form that is not known');
  await isRefused(imageOf({ more: { manifests: ['x'] } }), 'has a form that is not known');
  for (const Env of ['A=b', [7]])
    await isRefused(imageOf({ config: { ...goodConfig, config: { Env } } }), 'environment');
  await isRefused(imageOf({ config: { rootfs: { diff_ids: 'x' } } }), 'digests that are not SHA-256');
  for (const rootfs of [undefined, { diff_ids: [] }, { diff_ids: [digest('a'), digest('b')] }])
    await isRefused(imageOf({ config: { rootfs } }), 'another number of layers than it has');
});

test('an image has no more layers than can be stacked', async () => {
  const many = (count: number) =>
    imageOf({
      config: { rootfs: { diff_ids: Array(count).fill(digest('d')) } },
      layers: Array(count).fill({ digest: digest('1'), size: 1 }),
    });
  expect((await many(imageLayersMax)).layers.length).toBe(imageLayersMax);
  await isRefused(many(imageLayersMax + 1), `more than ${imageLayersMax} layers`);
});

test('a configuration is as long as 8 MiB, and no longer', async () => {
  const sized = (bytes: number) =>
    `${' '.repeat(bytes - JSON.stringify(goodConfig).length)}${JSON.stringify(goodConfig)}`;
  expect((await imageOf({ config: sized(8 << 20) })).layers.length).toBe(1);
  await isRefused(imageOf({ config: sized((8 << 20) + 1) }), 'is too long');
});
