import { readFileSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeTar, type NewTarEntry } from '../../../src/base/write-tar.ts';
import { symlink, text } from './trees.ts';

// Roots laid out like the distributions' own, made of programs of this machine: building and testing here does not need
// the distributions' archives. Their stand-ins for package managers record their arguments and fail, as without a
// network.

const root = { uid: 0, gid: 0 };
const directory = (path: string, mode = 0o755): NewTarEntry => ({
  path,
  type: 'directory',
  attributes: { mode, ...root },
});
const program = (path: string, content: Uint8Array, mode = 0o755): NewTarEntry => ({
  path,
  type: 'file',
  attributes: { mode, ...root },
  content: Buffer.from(content),
});
const script = (path: string, content: string) => text(path, content, { mode: 0o755, ...root });
const packageManager = (path: string) => script(path, '#!/bin/sh\necho "$@" >> /asked\nexit 1\n');

/**
 * Alpine's layout: busybox with its shell for everything, musl, ash as the login shell, `wheel`, no bash, certificates
 * in one file.
 */
export function muslTree(): Uint8Array {
  const machine = process.arch === 'arm64' ? 'aarch64' : 'x86_64';
  const applets = run('busybox', '--list')
    .split('\n')
    .filter(name => name !== '' && name !== 'busybox');
  const loader = realpathSync(`/lib/ld-musl-${machine}.so.1`);
  return writeTar([
    ...[
      'bin',
      'sbin',
      'lib',
      'etc',
      'etc/ssl',
      'etc/ssl/certs',
      'usr',
      'usr/bin',
      'usr/sbin',
      'root',
      'home',
      'var',
      'var/cache',
    ].map(path => directory(path)),
    directory('tmp', 0o1777),
    program('bin/busybox', readFileSync('/usr/bin/busybox')),
    ...applets.map(name => symlink(`bin/${name}`, '/bin/busybox')),
    program(`lib/ld-musl-${machine}.so.1`, readFileSync(loader)),
    symlink(`lib/libc.musl-${machine}.so.1`, `ld-musl-${machine}.so.1`),
    program('usr/bin/hello', compiled('musl-gcc')),
    packageManager('sbin/apk'),
    text('etc/alpine-release', '3.20.0\n'),
    text('etc/os-release', 'ID=alpine\nVERSION_ID=3.20.0\n'),
    text('etc/passwd', 'root:x:0:0:root:/root:/bin/ash\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n'),
    text('etc/group', 'root:x:0:root\nwheel:x:10:root\nusers:x:100:games\nnobody:x:65534:\n'),
    text('etc/shadow', 'root:*::0:::::\n', { mode: 0o640, ...root }),
    text(
      'etc/profile',
      'export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nfor script in /etc/profile.d/*.sh ; do\n\tif [ -r $script ] ; then\n\t\t. $script\n\tfi\ndone\n',
    ),
    text('etc/ssl/cert.pem', authorities),
  ]);
}

/**
 * Fedora's layout: everything under /usr with links beside it, glibc under lib64, bash, `wheel`, certificates under
 * /etc/pki.
 */
export function mergedTree(): Uint8Array {
  const commands = [
    'bash',
    'cat',
    'chmod',
    'chown',
    'cp',
    'env',
    'find',
    'grep',
    'id',
    'ln',
    'ls',
    'mkdir',
    'mktemp',
    'rm',
    'sed',
    'sleep',
    'stat',
    'tail',
    'touch',
    'useradd',
    'usermod',
    'passwd',
    'wc',
  ];
  const paths = commands.map(name => run('sh', '-c', `command -v ${name}`).trim());
  const libraries = new Set(
    paths.flatMap(path => [...run('ldd', path).matchAll(/(\/\S+) \(0x/g)].map(([, library = '']) => library)),
  );
  return writeTar([
    ...[
      'usr',
      'usr/bin',
      'usr/sbin',
      'usr/lib',
      'usr/lib64',
      'usr/local',
      'usr/local/bin',
      'etc',
      'etc/pki',
      'etc/pki/tls',
      'etc/pki/tls/certs',
      'etc/skel',
      'etc/default',
      'root',
      'home',
      'var',
      'var/log',
      'var/spool',
      'run',
    ].map(path => directory(path)),
    directory('tmp', 0o1777),
    symlink('bin', 'usr/bin'),
    symlink('sbin', 'usr/sbin'),
    symlink('lib', 'usr/lib'),
    symlink('lib64', 'usr/lib64'),
    ...paths.map(path => program(`usr/bin/${path.slice(path.lastIndexOf('/') + 1)}`, readFileSync(path))),
    symlink('usr/bin/sh', 'bash'),
    ...[...libraries].map(path => program(`usr/lib64/${path.slice(path.lastIndexOf('/') + 1)}`, readFileSync(path))),
    // Where this machine's loader looks, whatever the distribution's own would do.
    symlink(`usr/lib/${run('gcc', '-print-multiarch').trim()}`, '../lib64'),
    program('usr/bin/hello', compiled('gcc')),
    packageManager('usr/bin/dnf'),
    text('etc/os-release', 'ID=fedora\nVERSION_ID=40\n'),
    text('etc/passwd', 'root:x:0:0:Super User:/root:/bin/bash\nbin:x:1:1:bin:/bin:/usr/sbin/nologin\n'),
    text('etc/group', 'root:x:0:\nbin:x:1:\nwheel:x:10:\nusers:x:100:\n'),
    text('etc/shadow', 'root:!locked::0:99999:7:::\nbin:*:19760:0:99999:7:::\n', { mode: 0, ...root }),
    text('etc/profile', 'for i in /etc/profile.d/*.sh; do if [ -r "$i" ]; then . "$i" >/dev/null; fi; done\nunset i\n'),
    text('etc/skel/.bashrc', 'export FROM_SKELETON=yes\n'),
    text('etc/login.defs', 'UID_MIN 1000\nGID_MIN 1000\nCREATE_HOME yes\nUSERGROUPS_ENAB yes\n'),
    text('etc/default/useradd', 'SHELL=/bin/bash\nSKEL=/etc/skel\n'),
    text('etc/pki/tls/certs/ca-bundle.crt', authorities),
  ]);
}

/**
 * The layout of distroless images: a program with what it needs, users that log in nowhere, certificates; no shell, no
 * other program.
 */
export function shelllessTree(): Uint8Array {
  return writeTar([
    ...['usr', 'usr/bin', 'etc', 'etc/ssl', 'etc/ssl/certs', 'home', 'home/nonroot'].map(path => directory(path)),
    directory('tmp', 0o1777),
    directory('root', 0o700),
    program('usr/bin/hello', compiled('musl-gcc', '-static')),
    text('etc/os-release', 'PRETTY_NAME="Distroless"\nID=debian\n'),
    text(
      'etc/passwd',
      'root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n',
    ),
    text('etc/group', 'root:x:0:\nnobody:x:65534:\ntty:x:5:\nnonroot:x:65532:\n'),
    text('etc/ssl/certs/ca-certificates.crt', authorities),
  ]);
}

/** It only has to exist. */
const authorities = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n';

function compiled(compiler: string, ...flags: string[]): Uint8Array {
  const output = join(tmpdir(), `atoll-hello-${process.pid}-${compiler}`);
  const made = Bun.spawnSync([
    'sh',
    '-c',
    `printf '#include <stdio.h>\\nint main(void){return puts("hello from a program") < 0;}' | ${compiler} ${flags.join(' ')} -x c -o ${output} - && cat ${output} && rm ${output}`,
  ]);
  if (made.exitCode !== 0) throw new Error(made.stderr.toString());
  return made.stdout;
}

function run(...argv: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(argv);
  if (exitCode !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`);
  return stdout.toString();
}
