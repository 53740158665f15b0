import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'bun:test';
import { AtollError } from '../../../src/base/error.ts';
import { randomHex } from '../../../src/base/crypto/secret.ts';
import type { BuildState, StartBuild } from '../../../src/protocol/build.ts';
import { startBuildNode, type BuildNode, type Outcome } from '../../builds/support/build-node.ts';
import { makeImage, writeLayout } from '../../builds/support/oci-image.ts';
import { busyboxTree } from '../../builds/support/trees.ts';

/** A node that builds, with something on its host that no build may ever reach or change. */
export type BuildRange = AsyncDisposable & {
  builds: BuildNode;
  /** A directory of the host: `secret` in it holds what must not be found in any layer. */
  host: string;
  /** An image of a few programs, by the name `small`. */
  small: BuildState;
  /** Builds a Dockerfile. Fails if anything of the host got into a layer or was changed. */
  dockerfile(text: string, more?: Partial<StartBuild>): Promise<Outcome>;
  /** Any build, watched the same way. */
  build(request: Partial<StartBuild>): Promise<Outcome>;
};

export async function startBuildRange(): Promise<BuildRange> {
  const builds = await startBuildNode();
  const host = mkdtempSync(join(tmpdir(), 'atoll-host-'));
  const secret = randomHex(24);
  writeFileSync(join(host, 'secret'), secret);
  // Something that is only in the platform's own environment.
  process.env['ATOLL_ATTACK_SECRET'] = secret;
  const images = join(host, 'images');
  mkdirSync(images);
  writeLayout(makeImage([{ tar: busyboxTree(), compression: 'none' }]), join(images, 'small'));
  builds.settings({ images: { small: join(images, 'small') } });
  const layersDir = join(builds.test.dataDir, 'node/layers');
  const seen = new Set<string>();
  const before = readdirSync(host).join();

  const build: BuildRange['build'] = async request => {
    const outcome = await builds.build({ startsAsUser: false, readyCommand: 'true', ...request });
    for (const name of readdirSync(layersDir)) {
      if (seen.has(name)) continue;
      seen.add(name);
      if (readFileSync(join(layersDir, name)).includes(secret))
        throw new Error(`a layer holds what is the host's: ${outcome.log}`);
    }
    expect(outcome.log).not.toContain(secret);
    expect(readdirSync(host).join()).toBe(before);
    expect(readFileSync(join(host, 'secret'), 'utf8')).toBe(secret);
    return outcome;
  };
  const made = await build({ source: { kind: 'image', reference: 'small' } });
  if (made.result.status !== 'ready') throw new Error(made.log);
  const small = { ...made.result.state, user: 'root' };
  const templates = { small };
  return {
    builds,
    host,
    small,
    build,
    async dockerfile(text, more) {
      // As the API does: an unreadable text also ends the build.
      const stages = await builds.test.node.builds.readDockerfile(text).catch((error: unknown) => {
        if (error instanceof AtollError && error.code === 'invalid') return error;
        throw error;
      });
      if (stages instanceof AtollError)
        return { result: { status: 'error', message: stages.message }, entries: [], log: stages.message };
      return build({ source: { kind: 'dockerfile', stages, templates }, ...more });
    },
    async [Symbol.asyncDispose]() {
      delete process.env['ATOLL_ATTACK_SECRET'];
      await builds[Symbol.asyncDispose]();
      rmSync(host, { recursive: true, force: true });
    },
  };
}

/** The message of a build that must fail. */
export function refusalOf({ result, log }: Outcome): string {
  if (result.status !== 'error') throw new Error(`the build came through:\n${log}`);
  // Nothing that a stranger writes may count as the platform's fault.
  expect(result.message).not.toContain('the platform could not');
  return result.message;
}

export function readyOf({ result, log }: Outcome): BuildState {
  if (result.status !== 'ready') throw new Error(`an honest build failed: ${result.message}\n${log}`);
  return result.state;
}
