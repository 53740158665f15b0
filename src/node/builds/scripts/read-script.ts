import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The text of a shell script of this folder. Scripts run in build sandboxes, in whatever shell the image has. */
export function readScript(name: 'ensure-user.sh' | 'provision.sh'): string {
  return readFileSync(join(import.meta.dir, name), 'utf8');
}
