// node scripts/build-criu.mjs OUTPUT: puts a CRIU that can checkpoint on this kernel into the directory OUTPUT,
// self-contained.
//
// Distributions lag behind: Linux 6.16 changed what CRIU before 4.2 relies on. If the machine's own CRIU is too old,
// the packages of the distribution's next release are fetched from the machine's own mirror, by apt with its
// signatures, and unpacked beside the system. Nothing is installed. OUTPUT/criu.json says how to start it and which
// packages it comes from, or why there is none.
//
// The tested version is pinned by its digest and looked for first. If the mirror has moved on, its newer version is
// accepted by the distribution's signature, and this is reported: such a CRIU must still pass its own check here and
// the platform's self-test at each boot.
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { ownMirror, privateApt } from './setup/apt.mjs';
import { Problem } from './setup/problem.mjs';
import { run } from './setup/run.mjs';

/** Older ones fail on kernels since 6.16: they can't read the options of TCP sockets. */
const versionMin = [4, 2];
/** Suites of the machine's own mirror that may have it, the more stable first. */
const suitesOf = { Debian: ['testing', 'sid'], Ubuntu: ['devel'] };

/**
 * The version tested with this platform, and the SHA-256 of its Debian package, by Node.js's name of the architecture.
 */
const tried = {
  version: '4.2.1-1',
  digests: {
    x64: '4039578de7dd6480964754c1348416f0f0658fba3eadaa918bfe43e9a5fb9b04',
    arm64: 'ad7dd296f5f6686ab3fdee3f983c942b8fe54af2fb3658d0cc37cd7298e2bc8d',
  },
};

const output = resolve(process.argv[2] ?? 'dist/criu');
const say = text => process.stdout.write(`${text}\n`);

try {
  const own = await ownCriu();
  await (own ? describe(output, own) : unpackNewer(output));
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  // Sandboxes run without it; pausing with memory is then refused with this reason.
  const reason = error.message
    .split('\n')
    .filter(line => line.trim() !== '')
    .at(-1);
  await describe(output, { argv: null, version: null, source: null, reason });
  say(`no CRIU: ${reason}`);
}

/** The machine's own CRIU, if it is new enough and reports that the kernel suits it. */
async function ownCriu() {
  try {
    const version = versionOf(await run(['criu', '--version']));
    if (!newEnough(version)) return undefined;
    await run(['criu', 'check']);
    return { argv: ['criu'], version, source: 'the distribution' };
  } catch {
    return undefined; // not installed, or of no use here
  }
}

async function unpackNewer(output) {
  const mirror = await ownMirror();
  const work = mkdtempSync(join(tmpdir(), 'atoll-criu-'));
  try {
    const { apt, suite, version } = await findOffer(mirror, work);
    if (version !== tried.version)
      say(
        `CRIU ${tried.version}, which was tried, is not at the mirror any more: taking ${version} by the signature of ${mirror.origin} ${suite}`,
      );
    say(`downloading CRIU ${version} of ${mirror.origin} ${suite}`);
    await apt.run(['apt-get', 'install', '--download-only', '--yes', '--no-install-recommends', `criu=${version}`]);
    const made = await assemble(join(work, suite), {
      source: `${mirror.origin} ${suite}`,
      pinned: version === tried.version,
      packages: await packagesIn(join(work, suite, 'archives')),
    });
    rmSync(output, { recursive: true, force: true });
    mkdirSync(dirname(output), { recursive: true });
    move(made, output);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** The suite that has the tested version, or else the most stable one whose version is new enough. */
async function findOffer(mirror, work) {
  let newer;
  for (const suite of suitesOf[mirror.origin]) {
    const apt = await privateApt(join(work, suite), mirror, suite);
    say(`reading the package lists of ${mirror.origin} ${suite}`);
    await apt.update();
    const version = /Candidate: (\S+)/.exec(await apt.run(['apt-cache', 'policy', 'criu']))?.[1] ?? '';
    if (version === tried.version) return { apt, suite, version };
    if (!newer && newEnough(version.replace(/^\d+:/, ''))) newer = { apt, suite, version };
  }
  if (!newer)
    throw new Problem(
      `neither this system nor ${mirror.origin} ${suitesOf[mirror.origin].join(' or ')} has CRIU ${versionMin.join('.')} or newer`,
    );
  return newer;
}

/** Name, version and SHA-256 of every downloaded package. The pinned one must be unchanged. */
async function packagesIn(archives) {
  const packages = [];
  for (const file of readdirSync(archives)
    .filter(name => name.endsWith('.deb'))
    .sort()) {
    const [name = '', version = ''] = (
      await run(['dpkg-deb', '--showformat=${Package} ${Version}', '--show', join(archives, file)])
    )
      .trim()
      .split(' ');
    const sha256 = createHash('sha256')
      .update(readFileSync(join(archives, file)))
      .digest('hex');
    if (name === 'criu' && version === tried.version && sha256 !== tried.digests[process.arch])
      throw new Problem(
        `the package criu ${version} has the digest ${sha256}, and not the pinned ${tried.digests[process.arch]}`,
      );
    packages.push({ name, version, sha256 });
  }
  if (!packages.some(({ name }) => name === 'criu')) throw new Problem('apt downloaded no package criu');
  return packages;
}

/**
 * Unpacks the downloaded packages and keeps what CRIU loads: the program, its libraries, and the loader that finds
 * them.
 */
async function assemble(directory, facts) {
  const tree = join(directory, 'tree');
  const made = join(directory, 'made');
  mkdirSync(join(made, 'lib'), { recursive: true });
  const archives = join(directory, 'archives');
  for (const name of readdirSync(archives).filter(name => name.endsWith('.deb')))
    await run(['dpkg-deb', '--extract', join(archives, name), tree]);
  const files = readdirSync(tree, { recursive: true, encoding: 'utf8' });
  const loader = files.find(name => /^(usr\/)?lib\/[^/]+-linux-gnu\/ld-linux-[^/]+\.so\.\d$/.test(name));
  const program = files.find(name => /^(usr\/)?sbin\/criu$/.test(name));
  if (!loader || !program) throw new Problem('the packages hold no CRIU that can be started');
  for (const name of files.filter(name => /^(usr\/)?lib\/[^/]+-linux-gnu\/[^/]+\.so\.\d+$/.test(name))) {
    if (!lstatSync(join(tree, name)).isDirectory())
      copyFileSync(realpathSync(join(tree, name)), join(made, 'lib', basename(name)));
  }
  copyFileSync(join(tree, program), join(made, 'criu'));
  const loaderName = basename(loader);
  // Started through its own loader, it contains no paths and works wherever the directory is moved.
  const argv = ['{}/lib/' + loaderName, '--library-path', '{}/lib', '{}/criu'];
  const here = argv.map(part => part.replace('{}', made));
  const version = versionOf(await run([...here, '--version']));
  if (!newEnough(version)) throw new Problem(`the unpacked CRIU is ${version}`);
  say('asking CRIU about this kernel');
  await run([...here, 'check']);
  writeFileSync(join(made, 'criu.json'), `${JSON.stringify({ ...facts, argv, version }, null, 2)}\n`);
  return made;
}

async function describe(output, facts) {
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  writeFileSync(join(output, 'criu.json'), `${JSON.stringify(facts, null, 2)}\n`);
}

/** A rename if both are on one file system. */
function move(from, to) {
  try {
    renameSync(from, to);
  } catch (error) {
    if (error.code !== 'EXDEV') throw error;
    cpSync(from, to, { recursive: true });
  }
}

function versionOf(text, pattern = /^Version: (\S+)/m) {
  return pattern.exec(text)?.[1] ?? '';
}

function newEnough(version) {
  const [major = 0, minor = 0] = version.split('.').map(part => Number.parseInt(part, 10) || 0);
  return major > versionMin[0] || (major === versionMin[0] && minor >= versionMin[1]);
}
