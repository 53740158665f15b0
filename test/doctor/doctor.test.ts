import { expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { builtPrograms, criuDir, runscDir } from '../../src/bin/repository.ts';
import { examineHost } from '../../src/node/doctor/examine-host.ts';
import type { HostFinding } from '../../src/protocol/doctor.ts';
import { repository } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';

const names = [
  'kernel',
  'root',
  'user namespaces',
  'other namespaces',
  'seccomp',
  'open files',
  'cgroups',
  'cgroup kill and freeze',
  'filter of devices',
  'idmapped mounts',
  'overlay over idmapped layers',
  'EROFS',
  'disk limit',
  'quota',
  'reflinks',
  'disk space',
  'nftables',
  'connection tracking',
  'transparent proxy',
  'ports of the egress proxies',
  'veth',
  'way out',
  'port',
  'crun',
  'a sandbox',
  'gVisor',
  'KVM',
  'builds',
  'memory of paused sandboxes',
  'Node.js for the SDK',
  'shared limits',
  'core dumps',
  'unsecured sandboxes',
  'database',
  'TLS certificate',
  'name servers',
];

async function examine(env: Record<string, string>, within: string[] = []) {
  const { stdout, exitCode } = await runToEnd([...within, join(repository, 'bin/atoll'), 'doctor', '--json'], {
    env: { ...process.env, ...env },
  });
  return { exitCode, findings: JSON.parse(stdout) as HostFinding[] };
}

test('a host without the list of protocols, as bare ones and containers are, takes all rules', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-doctor-'));
  try {
    const bare = ['unshare', '--mount', 'sh', '-ec', 'mount --bind /dev/null /etc/protocols; exec "$@"', 'sh'];
    const { findings } = await examine({ ATOLL_DATA_DIR: dir }, bare);
    for (const name of ['nftables', 'transparent proxy', 'a sandbox'])
      expect(findings.find(finding => finding.name === name)).toMatchObject({ status: 'ok' });
  } finally {
    rmSync(dir, { recursive: true });
  }
}, 60_000);

const loopFiles = () =>
  readdirSync('/sys/block').flatMap(name => {
    const file = `/sys/block/${name}/loop/backing_file`;
    return existsSync(file) ? [readFileSync(file, 'utf8').trim()] : [];
  });

test('a host that runs these tests has all that is needed, and the doctor leaves nothing behind', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-doctor-'));
  try {
    const { findings, exitCode } = await examine({ ATOLL_DATA_DIR: dir });
    expect(findings.map(({ name }) => name)).toEqual(names);
    expect(findings.filter(({ needed, status }) => needed && status === 'missing')).toEqual([]);
    expect(exitCode).toBe(0);
    for (const { status, remedy } of findings) if (status !== 'ok') expect(remedy).toBeString();
    expect(readdirSync(dir)).toEqual([]);
    expect(loopFiles().filter(file => file.startsWith(dir))).toEqual([]);
    expect(
      readdirSync('/sys/fs/cgroup', { recursive: true }).filter(path => String(path).includes('atoll-doctor')),
    ).toEqual([]);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('a first start looks at all that is needed, and at nothing else', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-doctor-'));
  try {
    const { findings } = await examine({ ATOLL_DATA_DIR: dir });
    const looked = await examineHost({
      ...{ dataDir: dir, port: 0, servesPort: false, requireSecure: false, builds: 'on', driver: 'crun' },
      ...{ criuDir, runscDir, ...builtPrograms, onlyNeeded: true, diskReserveMiB: 2048 },
    });
    // The doctor's further findings do not concern the host.
    const needed = findings.slice(0, names.indexOf('database')).filter(finding => finding.needed);
    expect(looked.map(({ name, status }) => [name, status])).toEqual(needed.map(({ name, status }) => [name, status]));
    expect(looked.map(({ name }) => name)).toContain('a sandbox');
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('a port in use, and a directory whose file system can’t shift owners, are found', async () => {
  const server = Bun.serve({ port: 0, fetch: () => new Response() });
  try {
    const { findings, exitCode } = await examine({ ATOLL_PORT: String(server.port), ATOLL_DATA_DIR: '/proc/self' });
    expect(findings.find(({ name }) => name === 'port')?.status).toBe('limited');
    expect(findings.find(({ name }) => name === 'idmapped mounts')?.status).toBe('missing');
    expect(exitCode).toBe(1);
  } finally {
    await server.stop(true);
  }
});

test('ports that the egress proxies listen at are found where a program has them at all addresses', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-doctor-'));
  const look = async (program: string) => {
    const within = ['unshare', '--net', 'sh', '-ec', `ip link set lo up; ${program} "$@"`, 'sh'];
    const { findings } = await examine({ ATOLL_DATA_DIR: dir }, within);
    return findings.find(({ name }) => name === 'ports of the egress proxies');
  };
  const taking = (address: string) =>
    `python3 -c "${[
      'import socket, subprocess, sys',
      'kinds = [(socket.SOCK_STREAM, 3128), (socket.SOCK_DGRAM, 5353)]',
      'sockets = [socket.socket(socket.AF_INET, kind) for kind, _ in kinds]',
      `[s.bind(('${address}', port)) for s, (_, port) in zip(sockets, kinds)]`,
      'sockets[0].listen()',
      'sys.exit(subprocess.call(sys.argv[1:]))',
    ].join('; ')}"`;
  try {
    expect(await look(taking('0.0.0.0'))).toMatchObject({
      status: 'limited',
      detail: expect.stringContaining('in use at all addresses: TCP 3128, UDP 5353;'),
    });
    expect(await look(taking('127.0.0.1'))).toMatchObject({ status: 'ok' });
  } finally {
    rmSync(dir, { recursive: true });
  }
}, 120_000);

test('where no data directory can be, every remedy is to choose another one', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'atoll-doctor-'));
  try {
    const file = join(dir, 'file');
    writeFileSync(file, '');
    for (const dataDir of [file, join(file, 'data')]) {
      const { findings, exitCode } = await examine({ ATOLL_DATA_DIR: dataDir });
      const of = (name: string) => findings.find(finding => finding.name === name);
      for (const name of ['idmapped mounts', 'overlay over idmapped layers', 'EROFS', 'disk limit', 'a sandbox'])
        expect(of(name)).toMatchObject({
          status: 'missing',
          detail: `${file} is a file: no directory can be there`,
          remedy: expect.stringMatching(/^Set ATOLL_DATA_DIR to a directory/),
        });
      expect(of('database')).toMatchObject({ remedy: expect.stringMatching(/^Set ATOLL_DATA_DIR/) });
      expect(exitCode).toBe(1);
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
}, 60_000);
