import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Finding } from './inside/feature.ts';
import { checkout, contentsOfGuests, packSources, preparedDisk, unpack, unpackWithinMs } from './lab/checkout.ts';
import { makeOverlay, startGuest, type Guest } from './lab/guest.ts';
import { hosts, type Host } from './lab/host-list.ts';
import { imageOf } from './lab/image.ts';
import { thisMachine, type Machine } from './lab/machine.ts';
import { mustRun } from './lab/program.ts';
import { type HostReport, tableOf } from './report.ts';
import { client } from './stages/client.ts';
import { doctor } from './stages/doctor.ts';
import { down } from './stages/down.ts';
import { figures } from './stages/figures.ts';
import { groups } from './stages/groups.ts';
import { finding, type Scene, type Stage } from './stages/stage.ts';
import { repositorySuites } from './stages/suites.ts';
import { survival } from './stages/survival.ts';
import { up } from './stages/up.ts';

// The laboratory of hosts: `npm run test:hosts`. CONTRIBUTING.md says how to choose hosts and stages.
const stages: Stage[] = [doctor, up, client, groups, figures, survival, down, repositorySuites];
/** Without these nothing that comes behind them can be seen. */
const always = ['up', 'down'];
const here = 'here';

const guestLifetimeMs = 8 * 3_600_000;
const dataDir = '/var/lib/atoll';
const guestPort = 3000;
const herePort = 3990;

const { values } = parseArgs({
  options: { host: { type: 'string', multiple: true }, stage: { type: 'string', multiple: true }, only: { type: 'string', multiple: true }, keep: { type: 'boolean' }, write: { type: 'boolean' } },
});
// Machines end with their laboratory, however it is ended.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => process.exit(130));
const directory = join(process.env['ATOLL_CACHE_DIR'] ?? '/var/cache/atoll', 'hosts');
mkdirSync(directory, { recursive: true });
const privateKey = join(directory, 'key');
if (!existsSync(privateKey)) await mustRun(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'lab', '-f', privateKey], { timeoutMs: 60_000 });

const names = values.host ?? [...hosts.map(({ name }) => name), here];
const chosen = stages.filter(({ name }) => values.stage === undefined || values.stage.includes(name) || always.includes(name));
const reports: HostReport[] = [];
for (const name of names) {
  const host = hosts.find(candidate => candidate.name === name);
  if (!host && name !== here) throw new Error(`there is no host ${name}: ${[...hosts.map(known => known.name), here].join(', ')}`);
  const report = await (host ? lookAtGuest(host) : lookHere());
  reports.push(report);
  writeFileSync(join(directory, `${name}.json`), JSON.stringify(report, null, 2));
}
process.stdout.write(`\n${tableOf(reports)}`);
if (values.write) writeDocument();
process.exit(reports.some(({ findings }) => findings.some(({ verdict }) => verdict === 'fails')) ? 1 : 0);

async function lookAtGuest(host: Host): Promise<HostReport> {
  const startedAt = Date.now();
  const say = (text: string) => void process.stdout.write(`${host.name} ${String(Math.round((Date.now() - startedAt) / 1000)).padStart(5)} s  ${text}\n`);
  const image = await imageOf(host, directory, readFileSync(`${privateKey}.pub`, 'utf8'), await contentsOfGuests());
  const disk = await preparedDisk({ host, image, privateKey, say });
  const work = join(directory, 'runs', host.name);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const [overlay, sources] = [join(work, 'disk.qcow2'), join(work, 'sources.tar')];
  await makeOverlay(disk, 'qcow2', overlay);
  await packSources(sources);
  say('booting');
  const guest = await startGuest({ name: host.name, image, overlay, archives: [sources], network: false, privateKey, directory: work, lifetimeMs: guestLifetimeMs });
  try {
    say(`up: ${guest.login}`);
    await guest.run(unpack('/dev/vdb'), { timeoutMs: unpackWithinMs });
    return await lookAtMachine(host.title, guest, { dataDir, port: guestPort, log: join(work, 'log') }, say);
  } finally {
    if (values.keep) await kept(guest, say);
    await guest.end();
  }
}

async function lookHere(): Promise<HostReport> {
  const folder = mkdtempSync(join(tmpdir(), 'atoll-hosts-'));
  try {
    return await lookAtMachine('this machine', thisMachine(), { dataDir: join(folder, 'data'), port: herePort, log: join(folder, 'log') }, text => void process.stdout.write(`${here}: ${text}\n`));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function lookAtMachine(title: string, machine: Machine, place: Pick<Scene, 'dataDir' | 'port' | 'log'>, say: (text: string) => void): Promise<HostReport> {
  const scene: Scene = { machine, checkout, only: values.only ?? [], ...place };
  const facts = await machine.run('uname -r; [ -e /sys/fs/cgroup/cgroup.controllers ] && echo v2 alone || { [ -e /sys/fs/cgroup/unified ] && echo v1 beside v2 || echo v1; }; node --version', { timeoutMs: 60_000 });
  const [kernel = '', controlGroups = '', node = ''] = facts.output.split('\n');
  const findings: Finding[] = [];
  for (const stage of chosen) {
    say(`— ${stage.name}`);
    const found = await stage.run(scene).catch((error: unknown) => [finding(stage.name, false, String(error))]);
    for (const { feature, verdict, detail } of found) say(`${verdict.padEnd(8)} ${feature}${detail === '' ? '' : `: ${detail.replaceAll('\n', ' ')}`}`);
    findings.push(...found);
  }
  return { title, kernel, controlGroups, node, findings };
}

/** Lets a person in, until they shut the machine down or its time is over. */
async function kept(guest: Guest, say: (text: string) => void): Promise<void> {
  say(`kept until it is shut down: ${guest.login}`);
  while ((await guest.run('true', { timeoutMs: 60_000 })).exitCode === 0) await new Promise(resolve => setTimeout(resolve, 5_000));
}

/** Puts the newest report of every host into docs/hosts.md. */
function writeDocument(): void {
  const file = join(checkout, 'docs/hosts.md');
  const known = [...hosts.map(({ name }) => name), here].map(name => join(directory, `${name}.json`)).filter(path => existsSync(path));
  const table = tableOf(known.map(path => JSON.parse(readFileSync(path, 'utf8')) as HostReport));
  const [begin, end] = ['<!-- table: written by npm run test:hosts -- --write -->\n', '<!-- end of the table -->'];
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, `${text.slice(0, text.indexOf(begin) + begin.length)}\n${table}\n${text.slice(text.indexOf(end))}`);
}
