import { join } from 'node:path';
import { buildAgent } from './agent.mjs';
import { buildBuilder } from './builder.mjs';
import { prepareCriu } from './criu.mjs';
import { buildDashboard } from './dashboard.mjs';
import { buildDocs } from './docs.mjs';
import { checkHost } from './host.mjs';
import { buildExecutable } from './executable.mjs';
import { exclusively } from './lock.mjs';
import { buildNativeHelper } from './native-helper.mjs';
import { installNpmPackages } from './npm-packages.mjs';
import { prepareRunsc } from './runsc.mjs';
import { buildSeccompFilters } from './seccomp.mjs';
import { installSystemPackages } from './system-packages.mjs';

/**
 * Makes this checkout ready to start the platform: npm packages, system packages, native helper, seccomp filters,
 * agent, builder, dashboard, the platform itself, CRIU, gVisor. Steps already done are silent. `purposes`: what else it
 * is for, see `installSystemPackages`.
 */
export async function prepare(root, { runtimeOnly = false, ...purposes } = {}) {
  checkHost();
  await exclusively(join(root, 'dist/.setup.lock'), async () => {
    await installNpmPackages(root);
    if (runtimeOnly) return;
    await installSystemPackages(purposes);
    await buildNativeHelper(root);
    await buildSeccompFilters(root);
    await buildAgent(root);
    await buildBuilder(root);
    await buildDashboard(root);
    await buildExecutable(root);
    await buildDocs(root);
    await prepareCriu(root);
    await prepareRunsc(root);
  });
}
