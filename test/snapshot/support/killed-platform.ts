// A platform that is killed when a checkpoint is complete and CRIU waits for its message. Prints what it had.
import { join } from 'node:path';
import { checkpointToPause } from '../../../src/node/snapshot/checkpoint.ts';
import { startMachine } from './machine.ts';

const machine = await startMachine();
const sandbox = await machine.start(0);
await sandbox.launch(
  'ticker',
  '#!/bin/bash\ni=0\nwhile :; do i=$((i + 1)); echo $i >> /root/ticks; sleep 0.01; done\n',
);
const directory = join(machine.snapshots, 'pause');
const { dataDir, cgroup } = machine;
// The first process and the agent; others come and go.
const lasting = sandbox.source.group.processes().slice(0, 2);
process.stdout.write(
  `${JSON.stringify({ pid: sandbox.pid, dataDir, runDir: machine.host.runDir, cgroup, lasting })}\n`,
);
await checkpointToPause(machine.host, sandbox.source, {
  directory,
  name: 'killed',
  facts: {},
  then: 'end',
  async onComplete() {
    process.kill(process.pid, 'SIGKILL');
    await new Promise(() => {});
  },
});
