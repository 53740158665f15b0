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

/** What is examined, in this order, by the form in which Atoll is installed. */
const stages: Record<'checkout' | 'package', Stage[]> = {
  checkout: [doctor, up, client, groups, figures, survival, down, repositorySuites],
  package: [debianPackage, client, groups, figures, service],
};

/** It starts everything itself, and keeps no memory: alone it needs neither platform nor CRIU. */
const withoutPlatform = [repositorySuites.name];

/** The request of a run: names of stages, by default all; `again`: the platform already runs. */
export type Asked = { stages: string[] | undefined; again: boolean };

/** Whether any of it needs the platform. */
export const needsPlatform = (asked: Asked): boolean => !asked.stages?.every(name => withoutPlatform.includes(name));

/** The requested stages, and those without which they would see nothing, or would leave something on this machine. */
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
