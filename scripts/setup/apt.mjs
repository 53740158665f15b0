import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Problem } from './problem.mjs';
import { run } from './run.mjs';

const componentsOf = { Debian: 'main', Ubuntu: 'main universe' };
const keyringOf = {
  Debian: '/usr/share/keyrings/debian-archive-keyring.gpg',
  Ubuntu: '/usr/share/keyrings/ubuntu-archive-keyring.gpg',
};

/** Waits while another apt is at work, and for about half a minute retries a mirror that does not answer. */
export const patience = { 'DPkg::Lock::Timeout': '180', 'Acquire::Retries': '5' };
/** The same as command-line options. */
export const patient = Object.entries(patience).flatMap(([name, value]) => ['-o', `${name}=${value}`]);

/** The script by which Debian's packages find out whether they may start their services. */
const servicePolicy = '/usr/sbin/policy-rc.d';

/**
 * Runs `work`, which installs packages for their programs and not their services: an unwanted database or web server
 * would take ports of this machine.
 */
export async function startingNoServices(work) {
  if (existsSync(servicePolicy)) return work();
  // If a killed process leaves it behind, it allows everything again.
  const script = `#!/bin/sh\n[ -d /proc/${process.pid} ] && exit 101\nexit 0\n`;
  writeFileSync(servicePolicy, script, { mode: 0o755 });
  try {
    return await work();
  } finally {
    rmSync(servicePolicy, { force: true });
  }
}

/**
 * The mirror and the key that this machine's apt uses for its distribution. On a fresh machine apt has no package lists
 * and does not know them: then this fetches the lists.
 */
export async function ownMirror() {
  const known = await knownMirror();
  if (known) return known;
  await run(['apt-get', ...patient, 'update']);
  const found = await knownMirror();
  if (!found) throw new Problem('apt knows no Debian or Ubuntu mirror here');
  return found;
}

/**
 * The release of this machine's distribution, and the lines of sources.list(5) for it with its updates and security
 * fixes: what its own apt uses.
 */
export async function ownSources() {
  const { origin, release, keyring } = await ownMirror();
  const suites = ['', '-updates', '-security'].map(pocket => `${release}${pocket}`);
  const found = (await knownTargets()).filter(target => target.origin === origin && suites.includes(target.suite));
  const lines = found.map(({ uri, suite }) => `deb [signed-by=${keyring}] ${uri} ${suite} ${componentsOf[origin]}`);
  return { release, lines: [...new Set(lines)] };
}

async function knownTargets() {
  const format = '$(ORIGIN)\t$(LABEL)\t$(REPO_URI)\t$(SIGNED_BY)\t$(CODENAME)\t$(RELEASE)';
  const text = await run(['apt-get', 'indextargets', '--format', format, 'Created-By: Packages']).catch(() => '');
  return text.split('\n').map(line => {
    const [origin, label, uri, signedBy, release, suite] = line.split('\t');
    return { origin, label, uri, signedBy, release, suite };
  });
}

async function knownMirror() {
  for (const { origin, label, uri, signedBy, release } of await knownTargets()) {
    if (!(origin in componentsOf) || label !== origin) continue;
    const keyring = signedBy?.startsWith('/') ? signedBy : keyringOf[origin];
    if (!existsSync(keyring)) throw new Problem(`the keyring ${keyring} is missing`);
    return { origin, uri, keyring, release };
  }
  return undefined;
}

/**
 * An apt with separate sources, lists and state: it sees an empty system and leaves this one alone. `update` gets the
 * lists, `run` runs one of its programs.
 */
export async function privateApt(directory, mirror, suite) {
  for (const name of ['lists/partial', 'archives/partial', 'parts'])
    mkdirSync(join(directory, name), { recursive: true });
  const source = {
    Types: 'deb',
    URIs: mirror.uri,
    Suites: suite,
    Components: componentsOf[mirror.origin],
    'Signed-By': mirror.keyring,
  };
  writeFileSync(
    join(directory, 'parts/atoll.sources'),
    Object.entries(source)
      .map(([name, value]) => `${name}: ${value}\n`)
      .join(''),
  );
  writeFileSync(join(directory, 'status'), '');
  const settings = {
    ...patience,
    // Otherwise apt skips lists that it could not fetch, and their packages seem not to exist.
    'APT::Update::Error-Mode': 'any',
    'Dir::Etc::sourcelist': '/dev/null',
    'Dir::Etc::sourceparts': join(directory, 'parts'),
    'Dir::State': directory,
    'Dir::State::lists': join(directory, 'lists'),
    'Dir::State::status': join(directory, 'status'),
    'Dir::Cache': directory,
    'Dir::Cache::archives': join(directory, 'archives'),
    'APT::Get::AllowUnauthenticated': 'false',
    'APT::Sandbox::User': 'root',
    'Acquire::Languages': 'none',
    'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled': 'false',
    'Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled': 'false',
  };
  const file = join(directory, 'apt.conf');
  writeFileSync(
    file,
    Object.entries(settings)
      .map(([name, value]) => `${name} "${value}";\n`)
      .join(''),
  );
  const ask = argv => run(argv, { env: { ...process.env, APT_CONFIG: file, LC_ALL: 'C' } });
  const lists = `the package lists of ${mirror.origin} ${suite}`;
  const update = () =>
    ask(['apt-get', 'update']).catch(error => {
      throw new Problem(`${lists} could not be fetched: ${firstError(error.message)}`);
    });
  return { run: ask, update };
}

/** The first line of apt's output that says what was wrong. */
const firstError = text => /^[EW]: (.*)$/m.exec(text)?.[1] ?? text.split('\n').at(-1);
