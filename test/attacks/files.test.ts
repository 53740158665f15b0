import { afterAll, beforeAll, describe, expect } from 'bun:test';
import { closeSync, readSync, rmSync, writeFileSync } from 'node:fs';
import { newUuid } from '../../src/base/id.ts';
import { randomHex } from '../../src/base/crypto/secret.ts';
import { externalOption } from '../../src/node/snapshot/mounts.ts';
import { agentPort } from '../../src/protocol/agent.ts';
import { Platform } from '../api/platform.ts';
import { requestSandbox, runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from '../node/support/test-node.ts';
import { attackWall, type Attack } from './support/wall.ts';

// Where paths, links and special files may lead: through the agent's file API, through volumes, in names of mounts, and
// in the overlay that is a sandbox's root.

const marker = `atoll-${randomHex(8)}`;
const markerFile = `/tmp/atoll-files-${process.pid}`;
const volumeMiB = 16;

let it: TestNode;
let platform: Platform;
let sandboxId: string;
let volumeId: string;

beforeAll(async () => {
  writeFileSync(markerFile, marker);
  platform = await Platform.start({ features: { volumes: true } });
  it = await startTestNode();
  volumeId = newUuid();
  await it.node.protocol.volumes.create(volumeId, volumeMiB);
  ({ sandboxId } = await it.node.protocol.create(it.request({ volumes: [{ volumeId, path: '/mnt/shared' }] })));
  for (const folder of ['/home/user', '/mnt/shared']) await root(setUp(folder));
}, 300_000);
afterAll(async () => {
  rmSync(markerFile, { force: true });
  await platform[Symbol.asyncDispose]();
  await it.dispose();
}, 120_000);

const root = (command: string) => runInSandbox(it.node.protocol, sandboxId, command);

/** Links and special files, by the name that leads to them. */
const links: Record<string, string> = {
  'an absolute link to a file of the host': markerFile,
  'a relative link to a file of the host': `../../../../../../../..${markerFile}`,
  'a link through the root of init': `/proc/1/root${markerFile}`,
  'a link through its own root': `/proc/self/root/../../..${markerFile}`,
  'a link through its own directory': `/proc/self/cwd/../../../..${markerFile}`,
  'a link to the state of the agent': '/proc/self/fd/3',
  'a link to the state of init': '/proc/1/fd/3',
  'a link to the environment of the agent': '/proc/self/environ',
  'a link to the mappings of the agent': '/proc/self/maps',
  'a link to the memory of the agent': '/proc/self/mem',
  'a link to the memory of the kernel': '/proc/kcore',
  'a link to the kernel’s log': '/proc/kmsg',
  'a link to a disk of the host': '/dev/vda',
  'a link to a loop device': '/dev/loop0',
  'a link to physical memory': '/dev/mem',
  'a link without an end': 'loop',
};
const nameOf = (index: number) => `l${index}`;
const setUp = (folder: string) =>
  [
    `cd ${folder}`,
    ...Object.values(links).map((target, index) => `ln -s '${target}' ${nameOf(index)}`),
    'ln -s loop loop',
    `ln -s / top; ln -s /proc proc; ln -s /proc/self/fd descriptors; ln -s ${nameOf(0)} chain; mkdir below; ln -s ../${nameOf(0)} below/up`,
    `mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("${folder}/socket")'`,
    'echo fine > plain',
  ].join('\n');

/** Nothing of the host, nothing of the agent, and an immediate answer. */
function harmless(answer: { status: number; body: Buffer }): void {
  const text = answer.body.toString('latin1');
  expect(text).not.toContain(marker);
  expect(text).not.toMatch(/[0-9a-f]{64}\n/); // a control token
  expect(text).not.toContain('BUN_JSC');
  expect(answer.status).toBeGreaterThanOrEqual(400);
}

const files = (method: string, path: string, headers = {}, body?: Uint8Array) =>
  requestSandbox(
    it.node.protocol,
    sandboxId,
    agentPort,
    method,
    `/files?path=${encodeURIComponent(path)}&username=root`,
    headers,
    body,
  );
const read = (path: string) => async () => harmless(await files('GET', path));
const upload = (path: string) => files('POST', path, { 'content-type': 'application/octet-stream' }, Buffer.from('x'));

/** Names in a set-up folder that lead to nothing readable. */
const bad = [
  ...Object.keys(links).map((what, index) => [what, nameOf(index)] as const),
  ['a chain of links', 'chain'],
  ['a link below', 'below/up'],
  ['a pipe', 'pipe'],
  ['a socket', 'socket'],
  ['a folder', 'below'],
] as const;
const throughFolders = [
  ['the link to the root', `top${markerFile}`],
  ['the link to /proc', 'proc/self/fd/3'],
  ['the link to descriptors', 'descriptors/3'],
  ['the link to /proc, as a thread', 'proc/thread-self/fd/3'],
] as const;

const paths: Record<string, string> = {
  'the file itself': markerFile,
  'many levels up': `/../../../../../../../..${markerFile}`,
  'up from a folder': `/home/user/../../..${markerFile}`,
  'the root of init': `/proc/1/root${markerFile}`,
  'the agent’s descriptor': '/proc/self/fd/3',
  'the same as a device': '/dev/fd/3',
  'the same by number': '/proc/2/fd/3',
  'the same of a thread': '/proc/thread-self/fd/3',
  'the same of a task': '/proc/self/task/2/fd/3',
  'init’s descriptor': '/proc/1/fd/3',
  'the agent’s environment': '/proc/self/environ',
  'the agent’s mappings': '/proc/self/maps',
  'the agent’s memory': '/proc/self/mem',
  'a zero device': '/dev/zero',
  'a random device': '/dev/urandom',
  'a terminal': '/dev/tty',
  'a new terminal': '/dev/ptmx',
  'a NUL in the name': '/home/user/plain\0.txt',
  'a name that is too long': `/${'x'.repeat(300)}`,
  'a path that is too long': `/${'x/'.repeat(5000)}`,
  'a slash behind a file': '/home/user/plain/',
  'a file as a folder': '/home/user/plain/x',
  'masked memory': '/proc/kcore/',
  'a shared layer’s place': '/run/atoll',
  'the root folder': '/',
};

const mountPoints: Record<string, string> = {
  'the root': '/',
  nothing: '',
  'a relative path': 'data',
  up: '/..',
  'up in the middle': '/a/../proc',
  'up at the end': '/a/..',
  here: '/.',
  'here in the middle': '/a/./b',
  'two slashes': '//a',
  'two slashes in the middle': '/a//b',
  'a slash at the end': '/a/',
  proc: '/proc',
  'below proc': '/proc/sys',
  sys: '/sys',
  'below sys': '/sys/fs',
  dev: '/dev',
  'below dev': '/dev/shm',
  'the agent': '/.agent',
  'below the agent': '/.agent/x',
  'the agent’s place and a bracket': '/.agent]:x',
  'a bracket': '/a]',
  'a bracket and a colon': '/a]:/t',
  'the review’s chain': '/t]:/a]:/t]:/run/atoll/3/mounts/e',
  'a colon': '/a:b',
  'a quote': '/a"b',
  'a backslash': '/a\\b',
  'a line end': '/a\nb',
  'a return': '/a\rb',
  'a tab': '/a\tb',
  'a NUL': '/a\0b',
  'an escape': '/a\u001bb',
  'a delete': '/a\u007fb',
  'a control character above ASCII': '/a\u0085b',
  'a path that is too long': `/${'x'.repeat(600)}`,
  'a long path of many bytes': `/${'é'.repeat(300)}`,
  'a backspace': '/a\bb',
  'a form feed': '/a\fb',
  'only a bracket': '/]',
  'a bracket at the end of a folder': '/a]/b',
};
const criuNames = [
  '/a]',
  '/a]:/t',
  '/a:b',
  '/t]:/a]:/t]:/x',
  '/a\nexternal mnt[]',
  '/a\nroot /',
  '/a\0b',
  '/a\tb',
  '/a\rb',
  '/a\u007f',
  '/a"b',
  '/a\\b',
  '/:',
  '/]',
  ':',
  ']',
];

const attributes = [
  'trusted.overlay.opaque',
  'trusted.overlay.redirect',
  'trusted.overlay.metacopy',
  'trusted.overlay.origin',
  'trusted.overlay.nlink',
  'trusted.any',
  'security.ima',
  'security.any',
];

/**
 * Whether this kernel lets a file's owner set an attribute, outside of sandboxes too. Debian 12's does for most of
 * `security.*`: its bpf security module keeps the usual check from being made.
 */
function anybodyMaySet(name: string): boolean {
  const program = [
    'import os, tempfile',
    'os.setuid(65534)',
    'file = tempfile.NamedTemporaryFile()',
    `os.setxattr(file.name, '${name}', b'y')`,
  ].join('\n');
  return Bun.spawnSync(['python3', '-c', program]).exitCode === 0;
}

describe('files', () => {
  const agentReads: Attack[] = [
    ...bad.map(([what, name]): Attack => [`read: ${what}`, read(`/home/user/${name}`)]),
    ...throughFolders.map(([what, name]): Attack => [`read: through ${what}`, read(`/home/user/${name}`)]),
    ...Object.entries(paths).map(([what, path]): Attack => [`read: ${what}`, read(path)]),
  ];
  const agentWrites: Attack[] = [
    '/proc/self/fd/3',
    '/dev/fd/3',
    '/proc/self/mem',
    '/proc/self/oom_score_adj',
    '/proc/1/oom_score_adj',
    '/proc/sys/kernel/core_pattern',
    '/.agent/agent',
    '/.agent/new',
    '/sys/new',
    '/dev/null',
    '/home/user/pipe',
    '/home/user/socket',
    '/home/user/below',
    '/home/user/descriptors/3',
    '/home/user/loop',
  ].map((path): Attack => [
    `write: ${path}`,
    async () => {
      expect((await upload(path)).status).toBeGreaterThanOrEqual(400);
      // The agent still has its tokens.
      expect((await root('echo here')).stdout).toBe('here\n');
    },
  ]);
  const ofTheVolume = () => it.node.protocol.volumes;
  const volumeReads: Attack[] = [
    ...bad.map(([what, name]) => [what, name] as const),
    ...throughFolders,
    ['up', '..'] as const,
    ['up and away', `../../../../../../..${markerFile}`] as const,
    ['up in the middle', `below/../../../..${markerFile}`] as const,
    ['the image itself', '../disk.img'] as const,
  ].map(([what, name]): Attack => [
    `volume: ${what}`,
    async () => {
      const opened = await ofTheVolume()
        .openRead(volumeId, `/${name}`)
        .catch(() => undefined);
      if (!opened) return;
      const bytes = Buffer.alloc(256);
      readSync(opened.descriptor, bytes);
      closeSync(opened.descriptor);
      // A path is resolved as if the volume were the root: then it is a file of the volume.
      expect(bytes.toString()).not.toContain(marker);
      expect(what).toContain('up');
    },
  ]);
  const volumeRemoves: Attack[] = ['top', 'proc', nameOf(0), 'chain', 'descriptors'].map((name): Attack => [
    `volume: removing the link ${name} removes nothing else`,
    async () => {
      await ofTheVolume().removeEntry(volumeId, `/${name}`);
      expect(await Bun.file(markerFile).text()).toBe(marker);
      expect((await root('ls /proc/1/status /bin/sh')).exitCode).toBe(0);
    },
  ]);
  const mountPaths: Attack[] = Object.entries(mountPoints).map(([what, path]): Attack => [
    `mount point: ${what}`,
    async () => {
      const answer = await platform.call('POST', '/v2/sandboxes', {
        templateID: 'base',
        volumeMounts: [{ name: 'v', path }],
      });
      expect(answer).toMatchObject({
        status: 400,
        body: { message: expect.stringMatching(/volumeMounts(\[0\]|\/0|\.0)?.{0,3}path/) },
      });
    },
  ]);
  const names: Attack[] = criuNames.map((point): Attack => [
    `checkpoint: a mount at ${JSON.stringify(point)}`,
    () =>
      expect(() => externalOption({ point, external: true, key: 'm1', restrictions: [] })).toThrow(/mount point|path/),
  ]);
  const overlay: Attack[] = [
    ...attributes.map((name): Attack => [
      `overlay: set ${name}`,
      async () =>
        expect(
          (await root(`touch /root/f; python3 -c 'import os; os.setxattr("/root/f", "${name}", b"y")'`)).exitCode,
        ).toBe(anybodyMaySet(name) ? 0 : 1),
    ]),
    [
      'overlay: the disk’s own folders are not in sight',
      async () =>
        expect(
          (await root('ls -d /upper /work /discarded /newroot /lost+found 2>/dev/null; ls / | grep -cx usr')).stdout,
        ).toBe('1\n'),
    ],
    [
      'overlay: a hard link to the agent',
      async () => expect((await root('ln /.agent/agent /root/agent')).exitCode).not.toBe(0),
    ],
    [
      'overlay: a layer’s file is a copy when it is changed',
      async () => {
        const other = await it.node.protocol.create(it.request());
        await root(`echo ${marker} >> /etc/os-release; rm /usr/bin/tail; echo x > /usr/bin/marker`);
        expect(
          (
            await runInSandbox(
              it.node.protocol,
              other.sandboxId,
              `grep -c ${marker} /etc/os-release; ls /usr/bin/tail; ls /usr/bin/marker`,
            )
          ).stdout,
        ).toBe('0\n/usr/bin/tail\n');
        await it.node.protocol.kill(other);
      },
    ],
    [
      'overlay: a disk can’t hold more than it is large',
      async () => {
        const { stdout } = await root(
          'fallocate -l 100G /root/big 2>&1; rm -f /root/big; head -c 2G /dev/zero 2>&1 > /root/full; rm -f /root/full; echo again > /root/ok && cat /root/ok',
        );
        expect(stdout).toContain('No space left on device');
        expect(stdout).toEndWith('again\n');
      },
    ],
    [
      'volume: set-user-ID is not honoured',
      async () => {
        await root('cp /usr/bin/id /mnt/shared/id; chmod 4755 /mnt/shared/id');
        expect((await runInSandbox(it.node.protocol, sandboxId, '/mnt/shared/id -u', 'user')).stdout).toBe('1000\n');
      },
    ],
    [
      'volume: a device can’t be made',
      async () =>
        expect((await root('mknod /mnt/shared/null c 1 3 && head -c 1 /mnt/shared/null')).exitCode).not.toBe(0),
    ],
  ];
  attackWall({ name: 'files', atLeast: 165, timeoutMs: 60_000 }, [
    ...agentReads,
    ...agentWrites,
    ...volumeReads,
    ...mountPaths,
    ...names,
    ...overlay,
    ...volumeRemoves,
  ]);
});
