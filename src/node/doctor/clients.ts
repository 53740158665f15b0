import { tryCommand } from '../../base/process/command.ts';
import { limited, ok, type Probe } from './probe.ts';

/** The minor releases of Node.js from which on CommonJS loads ES modules, which the SDK needs, by major version. */
const minorMinOf: Record<number, number> = { 20: 19, 22: 12 };
const remedy =
  'Only programs that use E2B’s JavaScript SDK on this machine need a newer one (20.19, 22.12 or later): from ' +
  'nodejs.org, or by your version manager.';

/** Whether the Node.js of this machine loads E2B's published SDK. The platform itself does not run on it. */
export const clientProbe: Probe = {
  name: 'Node.js for the SDK',
  needed: false,
  remedy,
  async look() {
    const version = await tryCommand(['node', '--version']);
    const [major = 0, minor = 0] = version.replace('v', '').split('.').map(Number);
    const loads = major > 22 || minor >= (minorMinOf[major] ?? Number.POSITIVE_INFINITY);
    return loads ? ok(version) : limited(`${version} sets Atoll up, but can’t load E2B’s JavaScript SDK`, remedy);
  },
};
