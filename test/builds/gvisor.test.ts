import { afterAll, beforeAll, expect } from 'bun:test';
import { release } from 'node:os';
import { join } from 'node:path';
import { parseDockerfile } from '../../src/builder/dockerfile/parse.ts';
import { findRunsc } from '../../src/node/drivers/gvisor/find-runsc.ts';
import { startBuildNode, step, type BuildNode } from './support/build-node.ts';
import { testUnless } from '../support/skip.ts';

const runsc = findRunsc(join(import.meta.dir, '../../dist/runsc'));
const onGvisor = testUnless(runsc.found ? undefined : `no gVisor here: ${runsc.reason}`);

let builds: BuildNode | undefined;
beforeAll(async () => {
  if (runsc.found) builds = await startBuildNode({ driver: 'gvisor' });
}, 300_000);
afterAll(() => builds?.[Symbol.asyncDispose](), 60_000);

// gVisor's is always the same; on crun it is the host's own.
const kernel = 'uname -r';
const ofGvisor = '4.4.0';

onGvisor(
  'steps of an installation on gVisor run on gVisor, and what they leave is in the template',
  async () => {
    const { result, log } = await builds!.build({
      startsAsUser: false,
      steps: [
        step('RUN', `${kernel} > /kernel; rm /etc/motd; mkdir -p /etc/opt/x`),
        step('USER', 'app'),
        step('RUN', 'id -un > /tmp/who'),
      ],
    });
    if (result.status !== 'ready') throw new Error(`${result.message}\n${log}`);
    const seen = await builds!.inside(result.state, 'cat /kernel /tmp/who; ls /etc/motd 2>&1');
    expect(seen).toContain(ofGvisor);
    expect(seen).not.toContain(release());
    expect(seen).toContain('app');
    expect(seen).toContain('No such file');
  },
  120_000,
);

onGvisor(
  'what an author writes leads to no other kernel, and a cache directory is an empty one',
  async () => {
    const stages = parseDockerfile(
      `FROM base\nENV ATOLL_DRIVER=crun\nRUN --mount=type=cache,target=/cache touch /cache/x && ${kernel} > /kernel`,
    );
    const { result, log } = await builds!.build({
      startsAsUser: false,
      source: { kind: 'dockerfile', stages, templates: { base: builds!.base } },
    });
    if (result.status !== 'ready') throw new Error(`${result.message}\n${log}`);
    const seen = await builds!.inside(result.state, 'cat /kernel; ls /cache 2>&1');
    expect(seen).toContain(ofGvisor);
    expect(seen).not.toContain(release());
    expect(seen).not.toContain('x\n');
  },
  120_000,
);
