import type { DriverName } from '../../../protocol/driver.ts';
import { namesOf } from '../store/resolve.ts';
import type { BuildRecord } from '../../build/record.ts';
import type { Db } from '../../database/db.ts';

/**
 * How the operator wants a template's sandboxes to be isolated; templates that are not named get the node's default. A
 * client can't choose: names, which any team may take, can only select gVisor; only a template's ID, which nobody
 * chooses, can select another driver.
 */
export type TemplateDrivers = ReadonlyMap<string, DriverName>;

/**
 * The driver of sandboxes made from a build; undefined: the node's default. A snapshot keeps the driver that its
 * source's template had to have.
 */
export async function driverOf(
  { db, templateDrivers }: { db: Db; templateDrivers: TemplateDrivers },
  { templateId, config }: BuildRecord,
): Promise<DriverName | undefined> {
  // Most installations name none, and then a create need not read names.
  if (templateDrivers.size === 0) return config.driver;
  const names = await namesOf(db, templateId);
  return namedDriver(templateDrivers, templateId, names) ?? config.driver;
}

/** The operator's setting for a template with this ID and these names. */
export function namedDriver(
  drivers: TemplateDrivers,
  templateId: string,
  names: readonly { namespace: string; alias: string }[],
): DriverName | undefined {
  const called = [
    templateId,
    ...names.flatMap(({ namespace, alias }) => (namespace === '' ? [alias] : [alias, `${namespace}/${alias}`])),
  ];
  if (called.some(name => drivers.get(name) === 'gvisor')) return 'gvisor';
  return drivers.get(templateId);
}
