import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { commitOfCheckout, packSources, preparedDisk, unpack, unpackWithinMs } from './lab/checkout.ts';
import { checkout, contentsOf, missingIn } from './lab/contents.ts';
import { makeOverlay, startGuest, type Guest } from './lab/guest.ts';
import { hosts, type Host, isForeign } from './lab/host-list.ts';
import { imageOf } from './lab/image.ts';
import { thisMachine, type Machine } from './lab/machine.ts';
import { mustRun } from './lab/program.ts';
import { debianPackageOf } from './lab/release.ts';
import { type HostReport, newestOf, reportsIn, tableOf, withNewer } from './report.ts';
import { type Asked, needsPlatform, stagesFor } from './stages/choice.ts';
import { finding, type Scene, type Stage } from './stages/stage.ts';

// The laboratory of hosts: `npm run test:hosts`. CONTRIBUTING.md says how to choose hosts and stages.
/** The saved state of a guest that `--again` continues from: the platform serves, and nothing was done with it yet. */
const afterUp = 'after-up';
const here = 'here';
const titleHere = 'this machine';

const guestLifetimeMs = 8 * 3_600_000;
const dataDir = '/var/lib/atoll';
const guestPort = 3000;
const herePort = 3990;

const { values } = parseArgs({
  options: {
    host: { type: 'string', multiple: true },
    stage: { type: 'string', multiple: true },
    only: { type: 'string', multiple: true },
    again: { type: 'boolean' },
    keep: { type: 'boolean' },
    write: { type: 'boolean' },
  },
});
// Machines end with their laboratory, however it ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130));
const directory = join(process.env['ATOLL_CACHE_DIR'] ?? '/var/cache/atoll', 'hosts');
mkdirSync(directory, { recursive: true });
const privateKey = join(directory, 'key');
if (!existsSync(privateKey))
  await mustRun(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'lab', '-f', privateKey], { timeoutMs: 60_000 });

const asked: Asked = { stages: values.stage, again: values.again ?? false };

const names = values.host ?? [...hosts.map(({ name }) => name), here];
const reports: HostReport[] = [];
for (const name of names) {
  const host = hosts.find(candidate => candidate.name === name);
  if (!host && name !== here)
    throw new Error(`there is no host ${name}: ${[...hosts.map(known => known.name), here].join(', ')}`);
  reports.push(await (host ? lookAtGuest(host) : lookHere()));
}
process.stdout.write(`\n${tableOf(reports)}`);
if (values.write) writeDocument();
process.exit(reports.some(({ findings }) => findings.some(({ verdict }) => verdict === 'fails')) ? 1 : 0);

async function lookAtGuest(host: Host): Promise<HostReport> {
  const startedAt = Date.now();
  const say = (text: string) =>
    void process.stdout.write(
      `${host.name} ${String(Math.round((Date.now() - startedAt) / 1000)).padStart(5)} s  ${text}\n`,
    );
  const contents = await contentsOf(host);
  const image = await imageOf(host, directory, readFileSync(`${privateKey}.pub`, 'utf8'), contents);
  const work = join(directory, 'runs', host.name);
  const [overlay, sources] = [join(work, 'disk.qcow2'), join(work, 'sources.tar')];
  const missing = isForeign(host) ? [] : missingIn(image.contents, contents);
  const withoutLayers = missing.filter(path => !contents.layers.includes(path));
  if (!values.again) {
    const disk =
      host.installs === 'checkout' && needsPlatform(asked)
        ? {
            path: await preparedDisk({ host, image, missing: withoutLayers, privateKey, say }),
            format: 'qcow2' as const,
          }
        : { path: image.disk, format: 'raw' as const };
    rmSync(work, { recursive: true, force: true });
    mkdirSync(work, { recursive: true });
    await makeOverlay(disk.path, disk.format, overlay);
  }
  const commit = await commitOfCheckout();
  // A guest that has started Atoll has layers, and unpacking them takes it minutes.
  const debianPackage = host.installs === 'package' ? await debianPackageOf(join(directory, 'release')) : undefined;
  const further = [...(values.again ? withoutLayers : missing), ...(debianPackage ? [debianPackage] : [])];
  await packSources(host, sources, further);
  say(values.again ? 'going on after its first start' : 'booting');
  const guest = await startGuest({
    name: host.name,
    architecture: host.architecture,
    image,
    overlay,
    ...(values.again ? { from: afterUp } : {}),
    archives: [sources],
    network: false,
    privateKey,
    directory: work,
    lifetimeMs: guestLifetimeMs,
  });
  try {
    say(`up: ${guest.login}`);
    await guest.run(unpack('/dev/vdb'), { timeoutMs: unpackWithinMs });
    const place = { dataDir, port: guestPort, log: join(work, 'log'), ...(debianPackage ? { debianPackage } : {}) };
    const chosen = stagesFor(host.installs, guest.kind, asked);
    return await lookAtMachine(
      { name: host.name, title: host.title, machine: guest, chosen, commit, place, say },
      async ({ starts }) => {
        if (starts !== undefined) await guest.keep(afterUp);
      },
    );
  } finally {
    if (values.keep) await kept(guest, say);
    await guest.end();
  }
}

async function lookHere(): Promise<HostReport> {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-hosts-'));
  const work = join(directory, 'runs', here);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  try {
    return await lookAtMachine({
      name: here,
      title: titleHere,
      machine: thisMachine(),
      chosen: stagesFor('checkout', 'here', asked),
      commit: await commitOfCheckout(),
      place: { dataDir: join(folder, 'data'), port: herePort, log: join(work, 'log') },
      say: text => void process.stdout.write(`${here}: ${text}\n`),
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

type Looked = {
  name: string;
  title: string;
  machine: Machine;
  chosen: Stage[];
  /** The installed version of Atoll. */
  commit: string;
  place: Pick<Scene, 'dataDir' | 'port' | 'log' | 'debianPackage'>;
  say(text: string): void;
};

/** Runs the chosen stages on a machine. Writes its report after each, so that an interrupted run counts too. */
async function lookAtMachine(
  { name, title, machine, chosen, commit, place, say }: Looked,
  after: (stage: Stage) => Promise<void> = () => Promise.resolve(),
): Promise<HostReport> {
  const scene: Scene = { machine, checkout, only: values.only ?? [], ...place };
  const facts = await machine.run(
    'uname -r; [ -e /sys/fs/cgroup/cgroup.controllers ] && echo v2 alone || { [ -e /sys/fs/cgroup/unified ] && echo v1 beside v2 || echo v1; }; node --version 2>/dev/null || echo none',
    { timeoutMs: 60_000 },
  );
  const [kernel = '', controlGroups = '', node = ''] = facts.output.split('\n');
  const file = join(directory, `${name}.json`);
  let report: HostReport = { title, kernel, controlGroups, node, findings: [] };
  // What was not examined this time stays as it was last seen.
  if ((values.again || values.stage || values.only) && existsSync(file))
    report = { ...report, findings: (JSON.parse(readFileSync(file, 'utf8')) as HostReport).findings };
  for (const stage of chosen) {
    say(`— ${stage.name}`);
    const found = await stage.run(scene).catch((error: unknown) => [finding(stage.name, false, String(error))]);
    for (const { feature, verdict, detail } of found)
      say(`${verdict.padEnd(8)} ${feature}${detail === '' ? '' : `: ${detail.replaceAll('\n', ' ')}`}`);
    report = {
      ...report,
      findings: withNewer(
        report.findings,
        found.map(seen => ({ ...seen, commit })),
      ),
    };
    writeFileSync(file, JSON.stringify(report, null, 2));
    if (found.some(({ feature, verdict }) => feature === stage.starts && verdict === 'fails')) break;
    await after(stage);
  }
  return report;
}

/** Lets a person log in, until they shut the machine down or its time is over. */
async function kept(guest: Guest, say: (text: string) => void): Promise<void> {
  say(`kept until it is shut down: ${guest.login}`);
  while ((await guest.run('true', { timeoutMs: 60_000 })).exitCode === 0)
    await new Promise(resolve => setTimeout(resolve, 5_000));
}

/**
 * Puts the newest report of every host into docs/hosts.md. Hosts that this machine has not seen stay as on the page.
 */
function writeDocument(): void {
  const file = join(checkout, 'docs/hosts.md');
  const text = readFileSync(file, 'utf8');
  const [begin, end] = ['<!-- table: written by npm run test:hosts -- --write -->\n', '<!-- end of the table -->'];
  const [from, to] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
  const seen = [...hosts.map(({ name }) => name), here]
    .map(name => join(directory, `${name}.json`))
    .filter(path => existsSync(path))
    .map(path => JSON.parse(readFileSync(path, 'utf8')) as HostReport);
  const order = [...hosts.map(({ title }) => title), titleHere];
  const all = newestOf(reportsIn(text.slice(from, to)), seen);
  const table = tableOf(all.sort((one, other) => order.indexOf(one.title) - order.indexOf(other.title)));
  writeFileSync(file, `${text.slice(0, from)}\n${table}\n${text.slice(to)}`);
}
