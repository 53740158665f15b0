import { join } from 'node:path';
import { AtollError, messageOf } from '../../base/error.ts';
import { tryCommand } from '../../base/process/command.ts';
import type { Log } from '../../base/telemetry/log.ts';
import { pathInHelper, type Helper } from '../native/helper.ts';

/** Time between two attempts to let writers continue. */
const retryDelayMs = 1_000;

/** A volume's content below its mount point. No other file system has this path, so holding it holds nothing else. */
export const contentOf = (point: string): string => join(point, 'data');

/**
 * Carries out `work` while nobody writes to the volume that is mounted at `point`. It needs the helper only for the
 * mount: the helper may be among those that wait, in its one thread or a program that it runs. Errors: `internal`, and
 * those of `work`.
 */
export async function holdStill<T>(
  { helper, log }: { helper: Helper; log: Log },
  point: string,
  work: () => Promise<T>,
): Promise<T> {
  const content = pathInHelper({ helper }, contentOf(point));
  try {
    await freeze('--freeze', content).catch((error: unknown) => {
      throw new AtollError('internal', `a volume's writers can't be held: ${messageOf(error)}`, { cause: error });
    });
    return await work();
  } finally {
    // Needed even after a failed freeze: one that is killed still takes effect before it ends.
    await letGo({ helper, log }, content);
  }
}

/** Until this has succeeded, writers to the volume wait in the kernel, and can't be ended. */
async function letGo({ helper, log }: { helper: Helper; log: Log }, content: string): Promise<void> {
  while (helper.alive()) {
    try {
      return await freeze('--unfreeze', content);
    } catch (error) {
      if (isNotFrozen(error)) return;
      log.error('writers of a volume could not be let on yet', { content, error: messageOf(error) });
      await Bun.sleep(retryDelayMs);
    }
  }
}

async function freeze(how: '--freeze' | '--unfreeze', content: string): Promise<void> {
  await tryCommand(['env', 'LC_ALL=C', 'fsfreeze', how, content]);
}

/** EINVAL, in the words of fsfreeze(8). */
function isNotFrozen(error: unknown): boolean {
  return messageOf(error).endsWith('unfreeze failed: Invalid argument');
}
