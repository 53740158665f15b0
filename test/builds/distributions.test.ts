import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import { parseDockerfile } from '../../src/builder/dockerfile/parse.ts';
import { startBuildNode, step, type BuildNode } from './support/build-node.ts';
import { mergedTree, muslTree, shelllessTree } from './support/distributions.ts';
import { makeImage, writeLayout } from './support/oci-image.ts';
import { scratch } from './support/scratch.ts';

let builds: BuildNode;
let folder: ReturnType<typeof scratch>;

const distributions = [
  { name: 'alpine', tree: muslTree, asks: 'add --no-cache bash sudo', group: 'wheel' },
  { name: 'fedora', tree: mergedTree, asks: 'install -y --setopt=timeout=20 sudo', group: 'wheel' },
  { name: 'distroless', tree: shelllessTree, asks: undefined, group: undefined },
];

beforeAll(async () => {
  builds = await startBuildNode();
  folder = scratch();
  const images: Record<string, string> = {};
  for (const { name, tree } of distributions) {
    images[`${name}:latest`] = join(folder.path, name);
    writeLayout(
      makeImage([{ tar: tree(), compression: 'gzip' }], { env: ['PATH=/usr/local/bin:/usr/bin:/bin'] }),
      join(folder.path, name),
    );
  }
  builds.settings({ images });
}, 600_000);
afterAll(async () => {
  folder[Symbol.dispose]();
  await builds[Symbol.asyncDispose]();
});

describe.each(distributions)('an image laid out like $name', ({ name, asks, group }) => {
  test('builds, starts, and has what a sandbox has', async () => {
    const steps = [
      step(
        'RUN',
        'id -un; cd; pwd; hello; [[ -n $BASH_VERSION ]] && echo by bash; touch ~/mine /code/mine /usr/local/mine && echo may write',
      ),
    ];
    const { result, log } = await builds.build({
      source: { kind: 'image', reference: name },
      steps,
      startCommand: 'while true; do sleep 1; done',
      readyCommand: 'hello',
    });
    if (result.status !== 'ready') throw new Error(`${result.message}\n${log}`);
    expect(log).toContain('user\n/home/user\nhello from a program\nby bash\nmay write');
    const seen = await builds.inside(
      result.state,
      `
      cat /asked 2>/dev/null
      stat -c '%A %U:%G' /home/user /code /usr/local /tmp
      grep '^user:' /etc/passwd
      cat /etc/group | grep -w user
      bash -lc 'echo "shell $SHELL prompt $PS1"'
      cat /.e2b`,
    );
    if (asks !== undefined) expect(seen).toContain(asks);
    expect(seen).not.toContain('ca-certificates');
    expect(seen).toMatch(
      /drwx[r-][w-][x-][r-][w-][x-] user:user\ndrwxrwxrwx root:root\ndrwxrwxrwx root:root\ndrwxrwxrwt root:root\n/,
    );
    expect(seen).toMatch(/^user:x?:\d+:\d+:.*:\/home\/user:\/bin\/(ba)?sh$/m);
    expect(seen).toContain('shell /bin/bash prompt \\w \\$');
    if (group !== undefined) expect(seen).toMatch(new RegExp(`^${group}:.*\\buser\\b`, 'm'));
    expect(seen).toMatch(/BUILD_ID=/);
  });
});

test('a Dockerfile goes on from each as it would elsewhere', async () => {
  for (const { name } of distributions) {
    const file = `FROM ${name} AS tool\nFROM alpine\nCOPY --from=tool /usr/bin/hello /opt/hello\nRUN ls -l /opt/hello && echo ${name} > /from\nCMD ["sleep", "600"]`;
    const { result, log } = await builds.build({
      source: { kind: 'dockerfile', stages: parseDockerfile(file), templates: {} },
      startsAsUser: false,
      readyCommand: 'true',
    });
    if (result.status !== 'ready') throw new Error(`${result.message}\n${log}`);
    expect(await builds.inside(result.state, 'cat /from')).toBe(`${name}\n`);
  }
});
