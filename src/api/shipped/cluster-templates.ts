import type { Machines } from '../cluster/rules/machines.ts';
import { findBlob } from '../blob/store/blobs.ts';
import { AtollError, messageOf } from '../../base/error.ts';
import { buildsInStatus } from '../build/store/read.ts';
import { ensurePublicTemplate } from '../template/rules/provision.ts';
import type { ShippedTemplatesOptions } from './options.ts';
import { withRetries } from './retries.ts';
import { base, buildOnDemand, ensureTemplate } from './templates.ts';

const retryMs = 1_000;

type Options = Omit<ShippedTemplatesOptions, 'shipped'>;

/**
 * Builds the wanted shipped templates on machines in reach, one after the other, where the cluster has no usable build
 * of them, and from then on those that are built on demand. Ends when all are there, or at the signal. Creates wait for
 * the first build of each. Several control processes do this side by side: only one builds each template.
 */
export async function ensureClusterTemplates(options: Options, machines: Machines): Promise<void> {
  const { parts, team, settings, signal } = options;
  buildOnDemand(options, name => untilBuilt(name, options, machines));
  let done = Promise.resolve();
  for (const name of new Set([base, ...settings.templates])) {
    const { templateId } = await ensurePublicTemplate(parts, team, name);
    const built = done.then(() =>
      name === base
        ? untilBaseIsBuilt(options, machines)
        : withRetries(`the template ${name}`, () => untilBuilt(name, options, machines), { log: parts.log, signal }),
    );
    done = parts.awaitedBuilds.run(templateId, () => built);
  }
  await done;
}

/** Nothing works without it, so attempts never stop. */
async function untilBaseIsBuilt(options: Options, machines: Machines): Promise<void> {
  while (!options.signal.aborted) {
    try {
      return await untilBuilt(base, options, machines);
    } catch (error) {
      if (options.signal.aborted) return;
      options.parts.log.warn('the base template is tried again', { error: messageOf(error) });
      await Bun.sleep(retryMs);
    }
  }
}

/** Builds a template, or waits while another process does. Fails if its own build does. */
async function untilBuilt(name: string, options: Options, machines: Machines): Promise<void> {
  const { parts, team, signal } = options;
  const { templateId } = await ensurePublicTemplate(parts, team, name);
  const isUnderWay = async () =>
    (await buildsInStatus(parts.db, ['building'])).some(build => build.templateId === templateId);
  while (!signal.aborted) {
    const [first] = machines.usable();
    if (first && !(await isUnderWay()))
      try {
        return await ensureTemplate(name, { ...options, shipped: { ...first.machine.shipped, has } });
      } catch (error) {
        // When two processes begin at the same moment, one goes on.
        const isOthers = error instanceof AtollError && error.code === 'conflict';
        if (!isOthers && !(await isUnderWay())) throw error;
      }
    await Bun.sleep(retryMs);
  }

  async function has(layers: string[]): Promise<boolean> {
    if ((await machines.layers.holders(layers)).length > 0) return true;
    const blobs = await Promise.all(layers.map(digest => findBlob(parts.db, 'layer', digest)));
    return blobs.every(blob => blob?.state === 'stored');
  }
}
