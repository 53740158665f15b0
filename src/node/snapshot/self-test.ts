import { rmSync } from 'node:fs';
import { messageOf } from '../../base/error.ts';
import { checkpointToPause } from './checkpoint.ts';
import type { CheckpointSource } from './checkpoint-source.ts';
import type { CriuHost } from './criu.ts';
import { anyMemory, type LaterMeasure } from './later-pages.ts';
import type { Later } from './memory-keeping.ts';
import { openSnapshot, type OpenSnapshot } from './restore.ts';

/** A sandbox for the test: it has all that a real one has, and its root need not hold a file. */
export type TestedSandbox = {
  source: CheckpointSource;
  /** Settles when its agent accepts a connection. */
  answers(): Promise<void>;
};

/** What the test needs. Each part leaves nothing when it fails. */
export type SelfTestParts<Sandbox extends TestedSandbox> = {
  start(): Promise<Sandbox>;
  /** Frees what a sandbox without processes used, except for its disk. */
  release(sandbox: Sandbox): Promise<void>;
  /** Restores on the disk of the sandbox that was released. */
  restore(snapshot: OpenSnapshot, later: LaterMeasure | undefined): Promise<Sandbox>;
  /** Ends its processes. */
  kill(sandbox: Sandbox): Promise<void>;
  /** Removes the disk, if there is one: a failed restore leaves it. */
  removeDisk(): void;
};

/**
 * Checkpoints a real sandbox, ends it, restores it and asks its agent for a sign of life; then once more with memory
 * that comes later. Fails with what does not work; if only later memory does not work, it does not fail. `directory`
 * is for the snapshot and is removed.
 */
export async function testMemoryKeeping<Sandbox extends TestedSandbox>(
  host: CriuHost,
  parts: SelfTestParts<Sandbox>,
  directory: string,
): Promise<Later> {
  await using undo = new AsyncDisposableStack();
  undo.defer(() => rmSync(directory, { recursive: true, force: true }));
  rmSync(directory, { recursive: true, force: true });
  undo.defer(() => parts.removeDisk());
  let sandbox: Sandbox | undefined = await parts.start();
  undo.defer(async () => sandbox && parts.kill(sandbox));
  const keepAndRestore = async (kept: Sandbox, later?: LaterMeasure): Promise<Sandbox> => {
    await checkpointToPause(host, kept.source, {
      directory,
      name: 'self-test',
      facts: {},
      then: 'end',
      onComplete: async () => {},
    });
    sandbox = undefined;
    await parts.release(kept);
    sandbox = await parts.restore(await openSnapshot(host, directory), later);
    await sandbox.answers();
    rmSync(directory, { recursive: true });
    return sandbox;
  };
  const restored = await keepAndRestore(sandbox);
  try {
    await keepAndRestore(restored, anyMemory);
    return { notLater: null };
  } catch (error) {
    return { notLater: messageOf(error) };
  }
}
