import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpuMsOf, pssMiBOf } from '../measure/processes.ts';
import { machineFacts } from '../platform/report.ts';
import { startAgent } from '../../test/agent/support/test-agent.ts';
import { idleMemory, peakMiBOf, privateMiBOf } from './memory.ts';
import { startNginx } from './nginx.ts';
import {
  bigBytes,
  download,
  listProcesses,
  makeBigFile,
  makeSparseFile,
  manyProcesses,
  manySubscribers,
  startTrue,
  stdoutThroughput,
  terminalEcho,
  upload,
  watchTree,
  type Rate,
} from './work.ts';

// The agent alone, on loopback, without the platform in between: `bun bench/agent/run.ts [--quick]` writes a table.
const quick = Bun.argv.includes('--quick');
const share = (count: number) => (quick ? Math.ceil(count / 10) : count);
const rows: string[] = [];

const row = (name: string, value: string, goal = '') => {
  process.stderr.write(`${name}: ${value}\n`);
  rows.push(`| ${name} | ${value} | ${goal} |`);
};
const ms = (value: number) => `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`;
const mib = (value: number) => `${value.toFixed(1)} MiB`;
const rate = ({ megabytesPerSecond, agentCpuMs }: Rate) =>
  `${megabytesPerSecond.toFixed(0)} MB/s, ${agentCpuMs.toFixed(0)} ms of processor`;

const idle = await idleMemory(20, quick ? 1000 : 25_000);
row('PSS idle, 20 agents: blank', mib(idle.blankMiB), '≤ 5 MiB');
row('PSS idle, 20 agents: after init', mib(idle.withInitMiB), '≤ 5 MiB');
row('PSS of init (process 1)', mib(idle.initMiB));

const folder = mkdtempSync(join(tmpdir(), 'atoll-bench-agent-'));
try {
  await using agent = await startAgent();
  const cpu = () => cpuMsOf(agent.agentPid());
  const idleMiB = privateMiBOf(agent.agentPid());
  const first = await startTrue(agent, 1, 1);
  row('Start /bin/true, the first one', ms(first.latency.median));
  await startTrue(agent, 1, share(200));
  const alone = await startTrue(agent, 1, share(1000));
  row('Start /bin/true, p50 (p99)', `${ms(alone.latency.median)} (${ms(alone.latency.p99)})`);
  row('Start /bin/true, 8 clients', `${(await startTrue(agent, 8, share(250))).perSecond.toFixed(0)} per second`);
  const unaryCalls = await listProcesses(agent, 1, share(5000));
  row('List, p50 (p99)', `${ms(unaryCalls.latency.median)} (${ms(unaryCalls.latency.p99)})`);
  row('List, 16 clients', `${(await listProcesses(agent, 16, share(2000))).perSecond.toFixed(0)} per second`);
  const echo = await terminalEcho(agent, share(1000));
  row('Echo of a key in a terminal, p50 (p99)', `${ms(echo.median)} (${ms(echo.p99)})`);
  row('stdout of 1 GiB through the stream', rate(await stdoutThroughput(agent, quick ? bigBytes / 8 : bigBytes)));
  const many = await manyProcesses(agent, share(1000));
  row(`${share(1000)} processes: all running after, all ended after`, `${ms(many.startedMs)}, ${ms(many.endedMs)}`);
  row(
    `${share(200)} clients attached to one process, 8 MiB to each`,
    rate(await manySubscribers(agent, share(200), 8 << 20)),
  );
  row('Private memory after that, 5 s later', `${mib(await settled(agent.agentPid()))} (idle ${mib(idleMiB)})`);

  const watch = await watchTree(agent, share(100_000), share(300));
  row(
    `Watch ${share(100_000)} files: armed after, event p50 (p99)`,
    `${ms(watch.armMs)}, ${ms(watch.latency.median)} (${ms(watch.latency.p99)})`,
  );
  row('Private memory while nothing is watched any more', mib(await settled(agent.agentPid())));

  makeBigFile(agent, '/tmp/big');
  await using nginx = await startNginx(agent.path('/tmp/big'), agent.port + 1);
  const local = makeSparseFile(join(folder, 'upload'));
  for (let round = 1; round <= (quick ? 1 : 3); round++) {
    row(`Download of 1 GiB, round ${round}`, rate(await download(`${agent.url}/files?path=/tmp/big`, cpu)), '≥ 1 GB/s');
    if (nginx) row(`The same from nginx, round ${round}`, rate(await download(nginx.url, nginx.cpuMs)));
    const raw = ['--request', 'POST', '--header', 'content-type: application/octet-stream', '--upload-file', local];
    row(
      `Upload of 1 GiB, round ${round}`,
      rate(await upload(`${agent.url}/files?path=/tmp/up`, cpu, raw)),
      '≥ 600 MB/s',
    );
    row(
      `The same in a form, round ${round}`,
      rate(await upload(`${agent.url}/files`, cpu, ['--form', `file=@${local};filename=/tmp/up`])),
    );
  }
  row('Most memory resident at any time', mib(peakMiBOf(agent.agentPid())));
  row(
    'Private memory in the end, 5 s later',
    `${mib(await settled(agent.agentPid()))} (PSS alone ${mib(pssMiBOf(agent.agentPid()))})`,
    '≤ 12 MiB',
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}

process.stdout.write(`${machineFacts()}\n\n| What | Measured | Goal |\n|---|---|---|\n${rows.join('\n')}\n`);

async function settled(pid: number): Promise<number> {
  await Bun.sleep(5000);
  return privateMiBOf(pid);
}
