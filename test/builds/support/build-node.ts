import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newUuid } from '../../../src/base/id.ts';
import type { BuildSettings } from '../../../src/node/builds/compose.ts';
import type { BuildLogEntry, BuildResult, BuildState, BuildStep, StartBuild } from '../../../src/protocol/build.ts';
import type { DriverName } from '../../../src/protocol/driver.ts';
import { runInSandbox } from '../../node/support/run-in-sandbox.ts';
import { startTestNode, testResources, type TestNode } from '../../node/support/test-node.ts';

const teamId = 'team-1';
/** Longest time for one build of the tests. */
const buildTimeoutMs = 120_000;

export type Outcome = { result: BuildResult; entries: BuildLogEntry[]; log: string };

export type BuildNode = AsyncDisposable & {
  test: TestNode;
  /** The base template as a build's source. */
  base: BuildState;
  build(request: Partial<StartBuild>): Promise<Outcome>;
  /** The state of a build that must succeed. */
  built(request: Partial<StartBuild>): Promise<BuildState>;
  /** Stores an archive as uploaded files and answers its hash. */
  upload(archive: Uint8Array): string;
  /** Stores an archive that another team claims to be the files of a hash. */
  uploadOf(teamId: string, hash: string, archive: Uint8Array): void;
  /** Runs a command as root in a new sandbox made from the state, and answers its output. */
  inside(state: BuildState, command: string): Promise<string>;
  settings(images: object): void;
};

/** The image of a template exactly as a build has left it. */
export const imageOf = ({ layers, user, workdir, env }: BuildState) => ({
  templateId: 't',
  buildId: 'b',
  layers,
  defaultUser: user,
  defaultWorkdir: workdir,
  buildEnv: env,
});

/** A node for one test file, with what its tests need to build on it; with `memory`, one that can keep memory. */
export async function startBuildNode(
  options: { memory?: boolean; poolSize?: number; driver?: DriverName; builds?: Partial<BuildSettings> } = {},
): Promise<BuildNode> {
  const test = await startTestNode(options);
  const base: BuildState = { layers: [test.base], env: {}, user: 'root', workdir: '' };

  const build: BuildNode['build'] = async request => {
    const buildId = newUuid();
    await test.node.builds.start({
      buildId,
      templateId: 'template',
      teamId,
      source: { kind: 'state', state: base },
      steps: [],
      force: false,
      startsAsUser: true,
      resources: testResources,
      ...request,
    });
    const entries: BuildLogEntry[] = [];
    const deadline = Date.now() + buildTimeoutMs;
    for (let next = 0; Date.now() < deadline;) {
      const progress = await test.node.builds.progress(buildId, next, 5_000);
      entries.push(...progress.entries);
      next = progress.next;
      if (progress.result)
        return { result: progress.result, entries, log: entries.map(entry => entry.message).join('\n') };
    }
    throw new Error(`the build did not end:\n${entries.map(entry => entry.message).join('\n')}`);
  };

  return {
    test,
    base,
    build,
    async built(request) {
      const { result, log } = await build(request);
      if (result.status !== 'ready') throw new Error(`the build failed: ${result.message}\n${log}`);
      return result.state;
    },
    upload(archive) {
      const hash = createHash('sha256').update(archive).digest('hex');
      keepUpload(test.dataDir, { teamId, hash }, archive);
      return hash;
    },
    uploadOf: (teamId, hash, archive) => keepUpload(test.dataDir, { teamId, hash }, archive),
    async inside(state, command) {
      const sandbox = await test.node.protocol.create(test.request({ image: imageOf(state) }));
      try {
        const { stdout, stderr } = await runInSandbox(test.node.protocol, sandbox.sandboxId, command);
        return stdout + stderr;
      } finally {
        await test.node.protocol.kill(sandbox);
      }
    },
    settings: images => writeFileSync(join(test.dataDir, 'images.json'), JSON.stringify(images)),
    [Symbol.asyncDispose]: () => test.dispose(),
  };
}

export const step = (type: string, ...args: string[]): BuildStep => ({ type, args, force: false });

function keepUpload(dataDir: string, { teamId, hash }: { teamId: string; hash: string }, archive: Uint8Array): void {
  const dir = join(dataDir, 'files', teamId);
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, hash), archive);
}
