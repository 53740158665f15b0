import { AtollError } from '../../base/error.ts';
import { examineHost } from '../../node/doctor/examine-host.ts';
import { builtPrograms, criuDir, runscDir } from '../repository.ts';
import type { Settings } from '../settings/settings.ts';

/** The probe that needs everything that the others do. */
const whole = 'a sandbox';

/**
 * Fails with `precondition` if the host lacks what every sandbox needs, naming each lack with its remedy on one line.
 */
export async function requireAbleHost(settings: Settings): Promise<void> {
  const options = { ...settings, criuDir, runscDir, ...builtPrograms, servesPort: false, onlyNeeded: true };
  const lacks = (await examineHost(options)).filter(({ status }) => status === 'missing');
  if (lacks.length === 0) return;
  // A sandbox that fails only because something else is missing adds nothing new.
  const causes = lacks.length === 1 ? lacks : lacks.filter(({ name }) => name !== whole);
  const said = causes.map(
    ({ name, detail, remedy }) => `${name} (${detail})${remedy === undefined ? '.' : `: ${remedy}`}`,
  );
  throw new AtollError(
    'precondition',
    `Sandboxes can't run on this machine for want of ${said.join(' Also for want of ')} Nothing was changed.`,
  );
}
