import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { needed } from './system-packages.mjs';

/** npm's lock files, and the part that each belongs to. */
const npmLocks = [
  { file: 'package-lock.json', part: 'platform' },
  { file: 'templates/base/npm/package-lock.json', part: 'template base' },
  { file: 'templates/code-interpreter-v1/package-lock.json', part: 'template code-interpreter-v1' },
  { file: 'templates/mcp-gateway/package-lock.json', part: 'template mcp-gateway' },
];
const pythonLock = { file: 'templates/code-interpreter-v1/install/packages.txt', part: 'template code-interpreter-v1' };
/** Programs that set-up unpacks beside the system, as their scripts describe them. */
const unpacked = [
  { file: 'dist/criu/criu.json', part: 'CRIU' },
  { file: 'dist/runsc/runsc.json', part: 'gVisor' },
];

/**
 * Everything that is fetched, by version and digest, and the distribution's packages that Atoll relies on, in the form
 * of CycloneDX 1.5.
 */
export function billOfMaterials(root) {
  const { name, version, license, description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const all = [
    ...npmLocks.flatMap(({ file, part }) => npmComponents(join(root, file), part)),
    ...pythonComponents(join(root, pythonLock.file), pythonLock.part),
    ...unpacked.flatMap(({ file, part }) => unpackedComponents(join(root, file), part)),
    ...installedComponents(),
  ];
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        'bom-ref': `pkg:generic/${name}@${version}`,
        name,
        version,
        description,
        licenses: [{ expression: license }],
      },
    },
    components: merged(all),
  };
}

/** One component per package and version; several parts may use it. */
function merged(components) {
  const byRef = new Map();
  for (const component of components) {
    const known = byRef.get(component['bom-ref']);
    if (!known) byRef.set(component['bom-ref'], component);
    else
      known.properties.push(
        ...component.properties.filter(({ value }) => !known.properties.some(other => other.value === value)),
      );
  }
  return [...byRef.values()].sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1));
}

function component(purl, { name, version, part, ...more }) {
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    ...more,
    properties: [{ name: 'atoll:part', value: part }],
  };
}

function npmComponents(file, part) {
  const { packages } = JSON.parse(readFileSync(file, 'utf8'));
  return Object.entries(packages).flatMap(([path, entry]) => {
    if (path === '' || entry.link || !entry.version || !isForSupportedMachines(entry)) return [];
    const name = entry.name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    // In a package URL, the @ of a scope is encoded.
    return [
      component(`pkg:npm/${name.replace('@', '%40')}@${entry.version}`, {
        name,
        version: entry.version,
        part,
        ...(entry.dev && { scope: 'excluded' }),
        ...(entry.optional && !entry.dev && { scope: 'optional' }),
        ...(entry.integrity && { hashes: [integrityHash(entry.integrity)] }),
        ...(typeof entry.license === 'string' && { licenses: [{ expression: entry.license }] }),
      }),
    ];
  });
}

/**
 * Whether a package of npm's lock file is for machines that Atoll supports: Linux with glibc, x64 or arm64. npm
 * installs no other there. Each field is a name or a list.
 */
export function isForSupportedMachines({ os, cpu, libc }) {
  return (
    (!os || [os].flat().includes('linux')) &&
    (!cpu || [cpu].flat().some(name => ['x64', 'arm64'].includes(name))) &&
    (!libc || [libc].flat().includes('glibc'))
  );
}

const algorithms = { sha512: 'SHA-512', sha384: 'SHA-384', sha256: 'SHA-256', sha1: 'SHA-1' };

function integrityHash(integrity) {
  const [algorithm, digest] = integrity.split(' ')[0].split('-', 2);
  return { alg: algorithms[algorithm], content: Buffer.from(digest, 'base64').toString('hex') };
}

/** A package has several files, one per kind of machine: all of their digests are allowed. */
function pythonComponents(file, part) {
  const found = [];
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const [, name, version] = /^([A-Za-z0-9._-]+)==([^\s;\\]+)/.exec(line) ?? [];
    if (name) found.push(component(`pkg:pypi/${name.toLowerCase()}@${version}`, { name, version, part, hashes: [] }));
    const [, digest] = /--hash=sha256:([0-9a-f]{64})/.exec(line) ?? [];
    if (digest) found.at(-1)?.hashes.push({ alg: 'SHA-256', content: digest });
  }
  return found;
}

function unpackedComponents(file, part) {
  const { packages = [] } = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  return packages.map(({ name, version, sha256 }) =>
    component(`pkg:deb/debian/${name}@${encodeURIComponent(version)}`, {
      name,
      version,
      part,
      hashes: [{ alg: 'SHA-256', content: sha256 }],
    }),
  );
}

/** The installed packages of the distribution: apt has checked them by the distribution's signature. */
function installedComponents() {
  const { stdout } = spawnSync(
    'dpkg-query',
    ['--showformat=${Package} ${Version} ${db:Status-Status}\n', '--show', ...needed.map(({ name }) => name)],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  );
  return (stdout ?? '').split('\n').flatMap(line => {
    const [name, version, status] = line.split(' ');
    return status === 'installed'
      ? [
          component(`pkg:deb/${distributionId()}/${name}@${encodeURIComponent(version)}`, {
            name,
            version,
            part: 'host',
          }),
        ]
      : [];
  });
}

function distributionId() {
  const [, id] =
    /^ID="?([a-z]+)"?$/m.exec(existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '') ?? [];
  return id ?? 'debian';
}
