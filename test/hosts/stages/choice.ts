import { client } from './client.ts';
import { doctor } from './doctor.ts';
import { down } from './down.ts';
import { figures } from './figures.ts';
import { groups } from './groups.ts';
import { debianPackage } from './package.ts';
import { service } from './systemd.ts';
import type { Stage } from './stage.ts';
import { repositorySuites } from './suites.ts';
import { survival } from './survival.ts';
import { up } from './up.ts';

/** What is looked at, in this order, by what Atoll comes as. */
const stages: Record<'checkout' | 'package', Stage[]> = {
  checkout: [doctor, up, client, groups, figures, survival, down, repositorySuites],
  package: [debianPackage, client, groups, figures, service],
};

/**
 * What it starts, it starts itself, and none of it keeps memory: asked for alone it needs neither platform nor CRIU.
 */
const withoutPlatform = [repositorySuites.name];

/** What a run is asked for: names of stages, all by default; `again`: the platform runs already. */
export type Asked = { stages: string[] | undefined; again: boolean };

/** Whether any of it needs the platform. */
export const needsPlatform = (asked: Asked): boolean => !asked.stages?.every(name => withoutPlatform.includes(name));

/**
 * The stages that were asked for, and those without which they would see nothing, or would leave something on this
 * machine.
 */
export function stagesFor(comesAs: 'checkout' | 'package', kind: 'guest' | 'here', asked: Asked): Stage[] {
  const known = stages[comesAs];
  const first = known.findIndex(({ starts }) => starts !== undefined);
  const needed = needsPlatform(asked)
    ? [...(asked.again ? [] : [known[first]?.name]), ...(kind === 'here' ? [down.name] : [])]
    : [];
  return known
    .slice(asked.again ? first + 1 : 0)
    .filter(({ name }) => asked.stages === undefined || [...asked.stages, ...needed].includes(name));
}
