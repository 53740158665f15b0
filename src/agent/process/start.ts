import { statSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import type { Call } from '../connect/call.ts';
import { wireErrorOf } from '../connect/code.ts';
import { keepAlive } from '../connect/keepalive.ts';
import type { StateFile } from '../durable/state-file.ts';
import { booleanField, messageField, stringField, type Message } from '../connect/message.ts';
import type { Outbox } from '../connect/outbox.ts';
import { logProcess } from './process-log.ts';
import { resolvePath } from '../sandbox/paths.ts';
import { findUser, type User } from '../sandbox/users.ts';
import { readProcessConfig, readTerminalSize, type ProcessConfig } from './config.ts';
import { processEnvironment } from './environment.ts';
import { Process } from './process.ts';
import type { ProcessHost } from './process-host.ts';
import { recordOf, type ProcessRecord } from './process-record.ts';
import { startProgram } from './program.ts';

/**
 * `process.Process/Start`: starts a process and attaches the caller to it. The process outlives the caller; only the
 * call's deadline ends it.
 */
export async function start(agent: ProcessHost, message: Message, call: Call, outbox: Outbox): Promise<void> {
  const settings = agent.settings();
  const config = readProcessConfig(messageField(message, 'process') ?? {});
  const pty = messageField(message, 'pty');
  const tag = stringField(message, 'tag');
  const user = findUser(call.username || settings.defaultUser);
  const program = await startProgram(
    {
      argv: [config.cmd, ...config.args],
      environment: processEnvironment(user, settings.envVars, config.envs),
      user,
      cwd: workingDirectory(config, user, settings.defaultWorkdir),
      stdin: booleanField(message, 'stdin') ?? true,
      terminal: pty && readTerminalSize(pty),
    },
    agent.spawner,
    agent.native,
  );
  const facts = {
    pid: program.pid,
    config,
    tag,
    user: user.name,
    environment: settings.envVars,
    withOutput: settings.logOutput,
  };
  const log = logProcess(agent.journal, agent.outputBudget, facts);
  const process = new Process(program, config, tag, { outOfMemory: agent.outOfMemory, log });
  const slot = saveRecord(agent.state, recordOf(process, call.timeoutMs, agent.native));
  agent.processes.add(process, () => agent.state.removeProcess(slot));
  process.attach(outbox);
  if (call.timeoutMs !== undefined) process.endWithin(call.timeoutMs, () => endAtDeadline(process, outbox));
  outbox.onClose = () => process.detach(outbox);
  keepAlive(outbox, call.keepaliveMs);
}

/**
 * A record without the parts that don't fit still lets the process be found. Its variables are dropped too: they tell
 * what to mask.
 */
function saveRecord(state: StateFile, record: ProcessRecord): number {
  const slot = state.addProcess(record);
  if (slot >= 0) return slot;
  return state.addProcess({ ...record, config: { ...record.config, args: ['…'], envs: {} } });
}

function endAtDeadline(process: Process, outbox: Outbox): void {
  process.detach(outbox);
  outbox.end(
    wireErrorOf(
      new AtollError('deadline_exceeded', 'the process was killed: it did not end before the timeout of the call'),
    ),
  );
}

function workingDirectory(config: ProcessConfig, user: User, defaultWorkdir: string): string {
  const isAsked = Boolean(config.cwd) || defaultWorkdir !== '';
  const path = resolvePath(config.cwd ?? '', user, defaultWorkdir);
  const isDirectory = statSync(path, { throwIfNoEntry: false })?.isDirectory();
  if (isDirectory) return path;
  // As login(1) does: a user without a home is no reason to start nothing.
  if (!isAsked) return '/';
  throw new AtollError(
    'invalid',
    `cwd '${path}' ${isDirectory === undefined ? 'does not exist' : 'is not a directory'}`,
  );
}
