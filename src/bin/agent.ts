import { closeSync, writeSync } from 'node:fs';
import { createLog } from '../base/telemetry/log.ts';
import { agentPort } from '../protocol/agent.ts';
import { runAgent } from '../agent/main.ts';

// Run by the sandbox's init, never by hand: the state comes as an open file.
const stateFd = 3;
/** Closing it tells whoever started the sandbox that the agent serves (native/spawner.h). */
const signFd = 6;

function option(name: string): string | undefined {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1];
}

void runAgent({
  port: Number(option('--port') ?? agentPort),
  initPath: option('--init') ?? '/.agent/init',
  stateFd,
  serves: () => closeSync(signFd),
  // Not process.stderr, which would cost every sandbox 2 MiB.
  log: createLog('info', line => {
    try {
      writeSync(2, line);
    } catch {
      // Nobody reads it any more.
    }
  }),
});
