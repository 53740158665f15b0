import { AtollError } from '../../base/error.ts';
import { examineHost } from '../../node/doctor/examine-host.ts';
import { builtPrograms, criuDir, runscDir } from '../repository.ts';
import type { Settings } from '../settings/settings.ts';

/** Fails with `precondition` where the host lacks what no sandbox can do without, naming each lack with its remedy. */
export async function requireAbleHost(settings: Settings): Promise<void> {
  const lacks = (await examineHost({ ...settings, criuDir, runscDir, ...builtPrograms, servesPort: false })).filter(
    ({ needed, status }) => needed && status === 'missing',
  );
  if (lacks.length === 0) return;
  const lines = lacks.map(
    ({ name, detail, remedy }) => `  ${name}: ${detail}${remedy === undefined ? '' : ` → ${remedy}`}`,
  );
  throw new AtollError('precondition', `Sandboxes can't run on this machine yet:\n${lines.join('\n')}`);
}
