import type { Machines } from '../cluster/rules/machines.ts';
import { messageOf } from '../../base/error.ts';
import { buildsInStatus } from '../build/store/read.ts';
import { ensurePublicTemplate } from '../template/rules/provision.ts';
import type { ShippedTemplatesOptions } from './options.ts';
import { base, ensureBaseTemplate } from './templates.ts';

const retryMs = 1_000;

/**
 * Builds the `base` template on the first machine that is in reach, where the cluster has no build of it that a machine
 * in reach has. Ends when there is one, or at the signal. Creates from it wait for that.
 */
export async function ensureClusterBase(
  options: Omit<ShippedTemplatesOptions, 'shipped'>,
  machines: Machines,
): Promise<void> {
  const { parts, team, signal } = options;
  const { templateId } = await ensurePublicTemplate(parts, team, base);
  await parts.awaitedBuilds.run(templateId, async () => {
    while (!signal.aborted && !(await tryOnce(options, machines, templateId))) await Bun.sleep(retryMs);
  });
}

async function tryOnce(
  options: Omit<ShippedTemplatesOptions, 'shipped'>,
  machines: Machines,
  templateId: string,
): Promise<boolean> {
  const { parts, signal } = options;
  const [first] = machines.usable();
  if (!first) return false;
  // Another process may be at it.
  const open = await buildsInStatus(parts.db, ['building']);
  if (open.some(build => build.templateId === templateId)) return false;
  const has = async (layers: string[]) => (await machines.layers.holders(layers)).length > 0;
  try {
    await ensureBaseTemplate({ ...options, shipped: { ...first.machine.shipped, has } });
    return true;
  } catch (error) {
    if (!signal.aborted) parts.log.warn('the base template is tried again', { error: messageOf(error) });
    return false;
  }
}
