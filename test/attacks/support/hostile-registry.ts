import { networkInterfaces } from 'node:os';
import { gzipSync } from 'node:zlib';
import { expect } from 'bun:test';
import { pinnedFetch } from '../../../src/base/pinned-fetch.ts';
import { reachableAddresses } from '../../../src/node/builds/image/reachable.ts';
import { digestOf, makeImage, type OciImage } from '../../builds/support/oci-image.ts';
import { busyboxTree } from '../../builds/support/trees.ts';
import { readyOf, refusalOf, type BuildRange } from './build-attacks.ts';
import type { Attack } from './wall.ts';

type Serve = (url: URL, request: Request) => Response | undefined;

const image = makeImage([{ tar: busyboxTree(), compression: 'gzip' }]);
/** As an honest registry does. */
const honest: Serve = url => serving(image, url);
const on =
  (part: string, answer: (url: URL, request: Request) => Response): Serve =>
  (url, request) =>
    url.pathname.includes(part) ? answer(url, request) : honest(url, request);
const challenge =
  (text: string): Serve =>
  url =>
    url.pathname === '/token' ? undefined : new Response(null, { status: 401, headers: { 'www-authenticate': text } });
const withToken =
  (token: () => Response): Serve =>
  url =>
    url.pathname === '/token'
      ? token()
      : new Response(null, { status: 401, headers: { 'www-authenticate': `Bearer realm="${url.origin}/token"` } });
const json = (value: unknown) => new Response(JSON.stringify(value));
const endless = () =>
  new Response(new ReadableStream({ pull: controller => controller.enqueue(new Uint8Array(1 << 20)) }));
const redirect = (location: string) => new Response(null, { status: 302, headers: { location } });
const config = { digest: digestOf('{}'), size: 2 };

const hostile: [name: string, serve: Serve][] = [
  ['a challenge of 100 KB of words', challenge(`Bearer ${'a'.repeat(12_000)}`)],
  ['a challenge of quotes', challenge(`Bearer realm="${'"a='.repeat(4_000)}`)],
  ['a challenge that leads to a file', challenge('Bearer realm="file:///etc/shadow"')],
  ['a challenge without an address', challenge('Bearer service="x"')],
  [
    'a challenge that leads to the cloud’s own service',
    challenge('Bearer realm="http://169.254.169.254/latest/meta-data"'),
  ],
  ['a challenge that leads to a private network', challenge('Bearer realm="https://10.0.0.1/token"')],
  ['a token without end', withToken(endless)],
  [
    'a token of gzip that becomes 100 MB',
    withToken(() => new Response(gzipSync(Buffer.alloc(100 << 20)), { headers: { 'content-encoding': 'gzip' } })),
  ],
  ['a token that is no text', withToken(() => json({ token: { toString: 'x' } }))],
  ['a token with lines', withToken(() => json({ token: 'a\r\nx-evil: 1' }))],
  ['a manifest without end', on('manifests', endless)],
  [
    'a manifest of gzip that becomes 100 MB',
    on(
      'manifests',
      () => new Response(gzipSync(Buffer.alloc(100 << 20, ' ')), { headers: { 'content-encoding': 'gzip' } }),
    ),
  ],
  ['a manifest of brackets', on('manifests', () => new Response('['.repeat(1 << 20)))],
  ['a manifest that is null', on('manifests', () => json(null))],
  ['a manifest with layers of null', on('manifests', () => json({ config, layers: [null] }))],
  ['a manifest with manifests that are none', on('manifests', () => json({ manifests: { length: 5 } }))],
  [
    'a manifest with a digest that leads upwards',
    on('manifests', () => json({ config: { digest: 'sha256:../../../../etc/shadow' }, layers: [] })),
  ],
  [
    'a manifest with 1,000 layers',
    on('manifests', () => json({ config, layers: Array.from({ length: 1000 }, () => config) })),
  ],
  ['manifests that name each other', on('manifests', () => json({ manifests: [{ digest: digestOf('other') }] }))],
  ['a configuration with an environment of numbers', url => serving(makeImage([], { env: [5 as never] }), url)],
  ['a blob that is another', on('blobs', () => new Response('something else'))],
  ['redirects without end', on('blobs', url => redirect(`${url.pathname}x`))],
  ['a redirect to the cloud’s own service', on('blobs', () => redirect('http://169.254.169.254/'))],
  ['a redirect to a private network', on('blobs', () => redirect('https://192.168.0.1/'))],
  ['a redirect to another port of the machine', on('blobs', () => redirect('http://127.0.0.1:1/'))],
  ['a redirect to the machine by IPv6', on('blobs', () => redirect('https://[::1]/'))],
  ['a redirect to the machine by a mapped address', on('blobs', () => redirect('https://[::ffff:127.0.0.1]/'))],
  ['a redirect to a file', on('blobs', () => redirect('file:///etc/shadow'))],
  ['a redirect to nowhere', on('blobs', () => redirect('http://'))],
];

/**
 * A stranger's registry, which the operator has allowed to be on the loopback: everything else is as for any registry.
 */
export function registryAttacks(range: () => BuildRange): Attack[] {
  const build = async (serve: Serve) => {
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: request => serve(new URL(request.url), request) ?? new Response(null, { status: 404 }),
    });
    try {
      const host = `127.0.0.1:${server.port}`;
      range().builds.settings({ images: {}, registries: { [host]: { http: true } } });
      return await range().build({ source: { kind: 'image', reference: `${host}/x:latest` } });
    } finally {
      await server.stop(true);
    }
  };
  return [
    ...hostile.map(([name, serve]): Attack => [
      `a registry with ${name}`,
      async () => {
        refusalOf(await build(serve));
        readyOf(await build(honest));
      },
    ]),
    [
      'a registry whose name leads to another address by then',
      async () => {
        // The checked address counts, whatever the name is.
        const server = Bun.serve({
          hostname: '127.0.0.1',
          port: 0,
          fetch: request => new Response(request.headers.get('host')),
        });
        const answer = await pinnedFetch(new URL(`http://registry.invalid:${server.port}/`), '127.0.0.1', {
          headers: {},
        });
        expect(await answer.text()).toBe(`registry.invalid:${server.port}`);
        await server.stop(true);
      },
    ],
    ...privateHosts().map((host): Attack => [
      `a registry at ${host}`,
      async () => {
        await expect(reachableAddresses({ host, isSecure: true }, new Set())).rejects.toThrow(
          /may not reach|no address|no host/,
        );
        expect(await reachableAddresses({ host: '1.1.1.1', isSecure: true }, new Set())).toEqual(['1.1.1.1']);
      },
    ]),
    [
      'a registry without TLS',
      async () => {
        await expect(reachableAddresses({ host: '1.1.1.1', isSecure: false }, new Set())).rejects.toThrow(
          'without TLS',
        );
        expect(
          await reachableAddresses({ host: '127.0.0.1:5000', isSecure: false }, new Set(['127.0.0.1:5000'])),
        ).toEqual(['127.0.0.1']);
      },
    ],
  ];
}

function serving({ blobs, root }: OciImage, url: URL): Response | undefined {
  const name = url.pathname.split('/').at(-1) ?? '';
  const bytes = blobs.get(name === 'latest' ? root.digest : name);
  return bytes && new Response(Buffer.from(bytes));
}

function privateHosts(): string[] {
  const own = Object.values(networkInterfaces())
    .flat()
    .find(found => found && !found.internal && found.family === 'IPv4')?.address;
  const hosts = [
    'localhost',
    '127.0.0.1',
    '127.1',
    '0x7f.1',
    '2130706433',
    '10.1.2.3',
    '169.254.169.254',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[fe80::1]',
    '[2002:7f00:1::]',
    'x@127.0.0.1',
    '127.0.0.1/..',
  ];
  return own === undefined ? hosts : [...hosts, own];
}
