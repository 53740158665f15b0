import { join } from 'node:path';
import { buildAgent } from './agent.mjs';
import { buildBuilder } from './builder.mjs';
import { prepareCriu } from './criu.mjs';
import { checkHost } from './host.mjs';
import { exclusively } from './lock.mjs';
import { buildNativeHelper } from './native-helper.mjs';
import { installNpmPackages } from './npm-packages.mjs';
import { prepareRunsc } from './runsc.mjs';
import { installSystemPackages } from './system-packages.mjs';

/**
 * Brings this checkout to where the platform can start: npm packages, system packages, native helper, agent, builder, CRIU, gVisor.
 * What is there already is not done again, and says nothing.
 */
export async function prepare(root, { forTests = false, forLaboratory = false, runtimeOnly = false } = {}) {
  checkHost();
  await exclusively(join(root, 'dist/.setup.lock'), async () => {
    await installNpmPackages(root);
    if (runtimeOnly) return;
    await installSystemPackages({ forTests, forLaboratory });
    await buildNativeHelper(root);
    await buildAgent(root);
    await buildBuilder(root);
    await prepareCriu(root);
    await prepareRunsc(root);
  });
}
