// node scripts/build-runsc.mjs OUTPUT: puts gVisor's runsc, which isolates sandboxes with a kernel of its own, into the
// directory OUTPUT.
//
// It is the only program of a package of Debian 13, pinned by its digest: later builds of the same source crash,
// because their Go is too new for it. The package comes from the machine's own mirror, by apt with its signatures, and
// is unpacked beside the system. Nothing is installed. OUTPUT/runsc.json says what it is, or why there is none.
import {
  copyFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { ownMirror, privateApt } from './setup/apt.mjs';
import { Problem } from './setup/problem.mjs';
import { run } from './setup/run.mjs';

const suite = 'trixie';
const version = '0.0~20240729.0-4+b7';
/** SHA-256 of the package, by the architecture's names in Node.js and Debian. */
const pinned = {
  x64: { architecture: 'amd64', digest: '3c25a5130dfac2f71237d5baad56ac86a255de87a0400f11b36a555156dc325a' },
  arm64: { architecture: 'arm64', digest: '8e13e0625a094f962da3edcaf81ab0ed779726b6335e385a8148919f2c217c8e' },
};

const output = resolve(process.argv[2] ?? 'dist/runsc');
const say = text => process.stdout.write(`${text}\n`);

try {
  await unpack();
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  // Sandboxes run on crun without it; where gVisor is requested, nothing starts, with this reason.
  const reason = error.message
    .split('\n')
    .filter(line => line.trim() !== '')
    .at(-1);
  describe({ program: null, version: null, source: null, reason });
  say(`no gVisor: ${reason}`);
}

async function unpack() {
  const wanted = pinned[process.arch];
  if (!wanted) throw new Problem(`there is no gVisor for ${process.arch}`);
  const mirror = await ownMirror();
  if (mirror.origin !== 'Debian')
    throw new Problem(`gVisor is taken from Debian's packages, and this machine's mirror is of ${mirror.origin}`);
  const work = mkdtempSync(join(tmpdir(), 'atoll-runsc-'));
  try {
    const apt = await privateApt(work, mirror, suite);
    say(`reading the package lists of ${mirror.origin} ${suite}`);
    await apt.update();
    say(`downloading runsc ${version} of ${mirror.origin} ${suite}`);
    await apt.run([
      'apt-get',
      'install',
      '--download-only',
      '--yes',
      '--no-install-recommends',
      `runsc:${wanted.architecture}=${version}`,
    ]);
    const archive = readdirSync(join(work, 'archives')).find(
      name => name.startsWith('runsc_') && name.endsWith('.deb'),
    );
    if (!archive) throw new Problem('apt downloaded no package runsc');
    const digest = createHash('sha256')
      .update(readFileSync(join(work, 'archives', archive)))
      .digest('hex');
    if (digest !== wanted.digest)
      throw new Problem(`${archive} has the digest ${digest}, and not the pinned ${wanted.digest}`);
    await run(['dpkg-deb', '--extract', join(work, 'archives', archive), join(work, 'tree')]);
    const program = join(work, 'tree/usr/bin/runsc');
    const said = await run([program, '--version']);
    describe({
      program: 'runsc',
      version: /^runsc version (\S+)/m.exec(said)?.[1] ?? version,
      source: `${mirror.origin} ${suite}`,
      packages: [{ name: 'runsc', version, sha256: digest }],
    });
    copyFileSync(program, join(output, 'runsc'));
    chmodSync(join(output, 'runsc'), 0o755);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function describe(facts) {
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  writeFileSync(join(output, 'runsc.json'), `${JSON.stringify(facts, null, 2)}\n`);
}
