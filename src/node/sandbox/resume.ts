import { AtollError, messageOf } from '../../base/error.ts';
import type { Kept, ResumeSandbox } from '../../protocol/node.ts';
import { initAgent } from '../agent-call.ts';
import type { NodeContext, Paused, Running } from '../context.ts';
import { admit } from './admission.ts';
import { blankWithDisk, type Blank } from './blank.ts';
import { emptyVolatile } from './empty-volatile.ts';
import { inTurn } from './in-turn.ts';
import { sealKept, unsealKept, verifyKept } from './kept.ts';
import { pausedOf } from './pause.ts';
import { startTicksOf, type RunningRecord } from './record.ts';
import { onEnded, releaseBlank } from './remove.ts';
import { slotMountPoint } from './slot-disk.ts';
import { startTemplateServer } from './start-command.ts';

/** Lets a paused sandbox run again; the same next execution begins once, however often it is asked for. */
export function resumeSandbox(node: NodeContext, request: ResumeSandbox): Promise<Running> {
  const { sandboxId, nextExecutionId } = request;
  const running = node.running.get(sandboxId);
  if (running?.record.executionId === nextExecutionId && !running.removal) return Promise.resolve(running);
  const known = node.creating.get(nextExecutionId);
  if (known) return known;
  const paused = pausedOf(node, request);
  if (!paused) throw notPausedHere(sandboxId);
  const resuming = inTurn(paused, () => resume(node, paused, request)).finally(() => node.creating.delete(nextExecutionId));
  node.creating.set(nextExecutionId, resuming);
  return resuming;
}

async function resume(node: NodeContext, paused: Paused, request: ResumeSandbox): Promise<Running> {
  const { sandboxId } = request;
  if (pausedOf(node, request) !== paused) throw notPausedHere(sandboxId);
  admit(node);
  await verifyKept(node, sandboxId);
  await unsealKept(node, sandboxId);
  try {
    const running = await boot(node, paused, request);
    node.paused.delete(sandboxId);
    node.running.set(sandboxId, running);
    onEnded(node, running);
    return running;
  } catch (error) {
    await sealKept(node, sandboxId).catch(problem => node.log.error('a sandbox that could not be resumed is not sealed', { sandboxId, error: messageOf(problem) }));
    throw error;
  }
}

/** Starts a paused sandbox from its files: new processes, a new boot ID, nothing in what does not outlive a boot. */
async function boot(node: NodeContext, { record }: Paused, request: ResumeSandbox): Promise<Running> {
  const { sandboxId, image, resources } = record;
  const { network } = request;
  const layers = await Promise.all(image.layers.map(digest => node.layers.mount(digest)));
  const blank = await blankWithDisk(node, resources, node.records.diskOf(sandboxId));
  const { slot, pid, namespace, controlToken, ended } = blank;
  try {
    emptyVolatile(node, slot);
    await node.egress.apply({ sandboxId, slot, namespace }, network);
    node.driver.setLimits(slot, resources);
    await node.driver.giveRoot(slot, pid, { layers, disk: slotMountPoint(node, slot) });
    const caBundle = node.egress.trusted(network);
    await initAgent(namespace, controlToken, {
      envVars: request.envVars,
      accessToken: request.accessToken,
      timestamp: new Date().toISOString(),
      defaultUser: image.defaultUser,
      defaultWorkdir: image.defaultWorkdir,
      ...(caBundle !== undefined && { caBundle }),
    });
    // Whatever keeps the template's server from starting again: the files must stay within reach.
    await startTemplateServer(namespace, image, request.accessToken).catch(error => {
      node.log.warn('the start command failed when a sandbox was resumed from its files', { sandboxId, error: messageOf(error) });
    });
    return { record: await writeRunning(node, blank, record, request, 'filesystem'), namespace, ended };
  } catch (error) {
    await releaseBlank(node, blank);
    throw error;
  }
}

/** From here on a restart of the platform adopts the sandbox. */
async function writeRunning(node: NodeContext, blank: Blank, { image, resources }: Paused['record'], request: ResumeSandbox, from: Kept): Promise<RunningRecord> {
  const { slot, pid, controlToken, bootId } = blank;
  const startTicks = startTicksOf(pid);
  if (startTicks === undefined) throw new AtollError('internal', 'the sandbox ended while it was resumed');
  const record: RunningRecord = {
    state: 'running',
    sandboxId: request.sandboxId,
    executionId: request.nextExecutionId,
    slot: slot.number,
    pid,
    startTicks,
    startedAtMs: Date.now(),
    resumedFrom: from,
    controlToken,
    bootId,
    resources,
    network: request.network,
    image,
  };
  await node.records.write(record);
  return record;
}

function notPausedHere(sandboxId: string): AtollError {
  return new AtollError('not_found', `sandbox ${sandboxId} is not paused on this node`);
}
