import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { newUuid } from '../../src/base/id.ts';
import { parseDockerfile } from '../../src/builder/dockerfile/parse.ts';
import { startBuildNode, type BuildNode } from './support/build-node.ts';
import { makeImage, writeLayout } from './support/oci-image.ts';
import { scratch } from './support/scratch.ts';
import { busyboxTree } from './support/trees.ts';

let builds: BuildNode;
let images: ReturnType<typeof scratch>;

beforeAll(async () => {
  builds = await startBuildNode();
  images = scratch();
  // A system with Python and compilers, made from the base template's own files.
  const tree = `${images.path}/base.tar`;
  const [layer = ''] = builds.base.layers;
  const mount = `${images.path}/mount`;
  const script = `mkdir ${mount} && mount -t erofs -o ro "$1" ${mount} && tar -C ${mount} --numeric-owner -cf ${tree} .`;
  const packed = Bun.spawnSync([
    'unshare',
    '--mount',
    'sh',
    '-c',
    script,
    'pack',
    builds.test.node.layers.imagePath(layer),
  ]);
  if (packed.exitCode !== 0) throw new Error(packed.stderr.toString());
  const base = makeImage([{ tar: await Bun.file(tree).bytes(), compression: 'none' }], {
    env: ['PATH=/usr/local/bin:/usr/bin:/bin', 'BASE=yes'],
  });
  writeLayout(base, join(images.path, 'debian'));
  writeLayout(makeImage([{ tar: busyboxTree(), compression: 'gzip' }]), join(images.path, 'small'));
  builds.settings({
    images: {
      'debian:12': join(images.path, 'debian'),
      'python:3.11-slim': join(images.path, 'debian'),
      'alpine:3.20': join(images.path, 'small'),
    },
  });
}, 600_000);
afterAll(async () => {
  images[Symbol.dispose]();
  await builds[Symbol.asyncDispose]();
});

type Case = {
  name: string;
  dockerfile: string;
  /** Run as root in a sandbox of the result. */
  look?: string;
  shows?: string[];
  log?: string[];
  start?: string;
  ready?: string;
  user?: string;
  workdir?: string;
  fails?: string;
};

const cases: Case[] = [
  { name: 'one line', dockerfile: 'FROM alpine:3.20', look: 'id -un user', shows: ['user'], user: 'user', workdir: '' },
  { name: 'a command', dockerfile: 'FROM debian:12\nRUN echo done > /done', look: 'cat /done', shows: ['done'] },
  {
    name: 'lines that go on, with comments between',
    dockerfile: 'FROM debian:12\n# first\nRUN set -e && \\\n    # inside\n\n    echo a > /a && \\\n    echo b > /b',
    look: 'cat /a /b',
    shows: ['a\nb'],
  },
  {
    name: 'environment in both forms',
    dockerfile:
      'FROM debian:12\nENV A="x y" B=2\\ 3 C=\'$A\' D=${BASE}!\nENV E some words here\nENV F=${NONE:-default} G=${A:+set}\nRUN echo "$A|$B|$C|$D|$E|$F|$G" > /env',
    look: 'cat /env',
    shows: ['x y|2 3|$A|yes!|some words here|default|set'],
  },
  {
    name: 'arguments',
    dockerfile:
      'ARG TAG=12\nFROM debian:${TAG}\nARG TAG\nARG NAME=world\nENV GREETING="hello $NAME"\nRUN echo "$TAG $NAME $GREETING" > /args',
    look: 'cat /args; env',
    shows: ['12 world hello world'],
  },
  {
    name: 'users and directories',
    dockerfile:
      'FROM debian:12\nRUN useradd -m app\nWORKDIR /srv\nWORKDIR app\nUSER app\nRUN id -un > /tmp/who; pwd > /tmp/where',
    look: 'cat /tmp/who /tmp/where',
    shows: ['app\n/srv/app'],
    user: 'app',
    workdir: '/srv/app',
  },
  {
    name: 'exec form',
    dockerfile: 'FROM debian:12\nRUN ["/bin/sh", "-c", "echo $0 exec > /exec"]',
    look: 'cat /exec',
    shows: ['/bin/sh exec'],
  },
  {
    name: 'another shell',
    dockerfile:
      'FROM debian:12\nSHELL ["/bin/bash", "-o", "pipefail", "-c"]\nRUN [[ a == a ]] && echo ${BASH_VERSION:0:1} > /shell',
    look: 'cat /shell',
    shows: ['5'],
  },
  {
    name: 'a pipe that fails under pipefail',
    dockerfile: 'FROM debian:12\nSHELL ["/bin/bash", "-o", "pipefail", "-c"]\nRUN false | true',
    fails: 'exit status 1',
  },
  {
    name: 'a script inline',
    dockerfile: 'FROM debian:12\nRUN <<EOF\nset -e\necho "one $HOME" > /inline\necho two >> /inline\nEOF',
    look: 'cat /inline',
    shows: ['one /root\ntwo'],
  },
  {
    name: 'a script inline for another interpreter',
    dockerfile:
      'FROM python:3.11-slim\nRUN <<EOF\n#!/usr/bin/env python3\nimport sys\nopen("/py", "w").write(str(sys.version_info[0]))\nEOF',
    look: 'cat /py',
    shows: ['3'],
  },
  {
    name: 'a command that reads a document',
    dockerfile: 'FROM debian:12\nRUN cat <<"EOF" > /doc && echo more >> /doc\nkeep $this\nEOF',
    look: 'cat /doc',
    shows: ['keep $this\nmore'],
  },
  {
    name: 'files inline',
    dockerfile:
      'FROM debian:12\nARG V=7\nCOPY <<EOF <<"RAW" /conf/\nv=$V\nEOF\nv=$V\nRAW\nCOPY --chmod=750 --chown=1000:1000 <<EOF /conf/run.sh\n#!/bin/sh\nEOF',
    look: 'cat /conf/EOF /conf/RAW; stat -c "%a %u" /conf/run.sh',
    shows: ['v=7\nv=$V\n750 1000'],
  },
  {
    name: 'stages',
    dockerfile:
      'FROM debian:12 AS build\nWORKDIR /src\nRUN printf "int main(int n){return n>1?42:0;}" > main.c && gcc -static -o app main.c && mkdir -p out/lib && echo l > out/lib/x && ln -s lib/x out/link\n' +
      'FROM alpine:3.20\nCOPY --from=build /src/app /usr/local/bin/\nCOPY --from=build /src/out /opt/out\nCMD ["app"]',
    look: '/usr/local/bin/app x; echo $?; cat /opt/out/link; ls /src 2>&1',
    shows: ['42\nl\n', 'No such file'],
    start: 'app',
  },
  {
    name: 'a stage that continues another, and one that nobody needs',
    dockerfile:
      'FROM debian:12 AS common\nRUN echo c > /common\nFROM common AS broken\nRUN exit 9\nFROM common\nCOPY --from=0 /common /copied\nRUN cat /common > /seen',
    look: 'cat /seen /copied',
    shows: ['c\nc'],
  },
  {
    name: 'files of an image',
    dockerfile: 'FROM debian:12\nCOPY --from=alpine:3.20 --chown=1000 /bin/busybox /opt/bin/',
    look: '/opt/bin/busybox echo works; stat -c %u /opt/bin/busybox',
    shows: ['works\n1000'],
  },
  {
    name: 'the same files copied once more, above others',
    dockerfile:
      'FROM debian:12\nCOPY --from=alpine:3.20 /bin/busybox /d/\nCOPY --from=alpine:3.20 /etc/os-release /d/\nCOPY --from=alpine:3.20 /bin/busybox /d/',
    look: 'ls /d',
    shows: ['busybox\nos-release'],
  },
  {
    name: 'a glob that stands for one file, and several files for a directory that is there',
    dockerfile:
      'FROM debian:12 AS build\nRUN mkdir /t && echo j > /t/a-1.jar && echo b > /t/b\nFROM alpine:3.20\nWORKDIR /srv\nCOPY --from=build /t/*.jar app.jar\nCOPY --from=build /t/b /etc/debian_version .\nCOPY <<c <<d .\nc\nd\nCOPY --from=build /t/* /tmp',
    look: 'cd /srv; cat app.jar; ls; ls /tmp',
    shows: ['j\napp.jar\nb\nc\nd\ndebian_version\n', 'a-1.jar\nb\n'],
  },
  {
    name: 'a glob that stands for several files and one destination',
    dockerfile:
      'FROM debian:12 AS build\nRUN mkdir /t && touch /t/a /t/b\nFROM alpine:3.20\nCOPY --from=build /t/* /new',
    fails: 'where several files are copied, the destination must be there or end in /',
  },
  {
    name: 'sources that stand for more together than an instruction may',
    dockerfile: `FROM debian:12\nENV A=${'x'.repeat(65_000)}\nCOPY --from=debian:12 ${'$A '.repeat(20)}/x/`,
    fails: 'what variables stand for is longer than 1048576 characters',
  },
  {
    name: 'a cache that outlives the build',
    dockerfile:
      'FROM debian:12\nRUN --mount=type=cache,target=/var/cache/app,id=kept echo one >> /var/cache/app/log && cp /var/cache/app/log /log1\nRUN --mount=type=cache,target=/elsewhere,id=kept --mount=type=tmpfs,target=/scratch echo two >> /elsewhere/log; cp /elsewhere/log /log2; touch /scratch/x',
    look: 'cat /log2; ls /var/cache/app /elsewhere /scratch 2>&1',
    shows: ['one\ntwo'],
  },
  {
    name: 'a cache shown at two places',
    dockerfile:
      'FROM debian:12\nRUN --mount=type=cache,target=/a,id=twice --mount=type=cache,target=/b,id=twice echo seen > /a/x && cp /b/x /x',
    look: 'cat /x',
    shows: ['seen'],
  },
  {
    name: 'a cache for another user',
    dockerfile:
      'FROM debian:12\nRUN useradd -u 1234 app\nUSER app\nRUN --mount=type=cache,target=/owned,uid=1234,gid=1234,mode=0700 touch /owned/x && stat -c "%u:%g:%a" /owned > /tmp/owner',
    look: 'cat /tmp/owner',
    shows: ['1234:1234:700'],
  },
  {
    name: 'what says nothing about files',
    dockerfile:
      'FROM debian:12\nLABEL a=b "c d"="e"\nEXPOSE 80/tcp\nVOLUME /data\nHEALTHCHECK CMD true\nSTOPSIGNAL SIGTERM\nMAINTAINER me\nONBUILD RUN false\nRUN true',
  },
  {
    name: 'entry point and arguments',
    dockerfile:
      'FROM debian:12\nENTRYPOINT ["python3", "-m", "http.server"]\nCMD ["--bind", "it\'s", "8080"]\nENTRYPOINT ["sleep"]\nCMD ["600"]',
    start: 'sleep 600',
  },
  {
    name: 'arguments before their entry point',
    dockerfile: 'FROM debian:12\nCMD ["600"]\nENTRYPOINT ["sleep"]',
    start: 'sleep 600',
  },
  {
    name: 'an entry point in place of what another stage starts',
    dockerfile: 'FROM debian:12 AS first\nCMD ["500"]\nFROM first\nENTRYPOINT ["sleep", "600"]',
    start: 'sleep 600',
  },
  {
    name: 'programs where PATH says, in the start command too',
    dockerfile:
      'FROM python:3.11-slim\nRUN python3 -m venv --without-pip /venv && printf "#!/bin/sh\\nexec sleep 600\\n" > /venv/bin/serve && chmod +x /venv/bin/serve\nENV PATH=/venv/bin:$PATH\nRUN command -v python3 > /which\nCMD ["serve"]',
    look: 'cat /which',
    shows: ['/venv/bin/python3'],
    start: 'serve',
    ready: 'pgrep sleep',
  },
  {
    name: 'nothing at all',
    dockerfile: 'FROM scratch\nCOPY --from=debian:12 /etc/debian_version /etc/',
    look: 'cat /etc/debian_version',
    shows: ['12'],
  },
  {
    name: 'a command that fails',
    dockerfile: 'FROM debian:12\nRUN echo why; exit 5',
    fails: "failed to run command 'echo why; exit 5': exit status 5\nwhy",
  },
  {
    name: 'files that nobody sent',
    dockerfile: 'FROM debian:12\nCOPY . /app',
    fails: 'line 2: there are no files to copy',
  },
];

describe('Dockerfiles', () => {
  test.each(cases.map(each => [each.name, each] as const))(
    '%s',
    async (_, { dockerfile, look, shows = [], log: logged = [], start, ready = 'true', user, workdir, fails }) => {
      // The ready command saves the wait that a start command without one gets.
      const { result, log } = await builds.build({
        source: { kind: 'dockerfile', stages: parseDockerfile(dockerfile), templates: {} },
        startsAsUser: false,
        readyCommand: ready,
      });
      for (const line of logged) expect(log).toContain(line);
      if (fails !== undefined) {
        expect(result).toMatchObject({ status: 'error' });
        expect(result.status === 'error' && result.message).toContain(fails);
        return;
      }
      if (result.status !== 'ready') throw new Error(`${result.message}\n${log}`);
      if (start !== undefined) expect(result.startCommand).toBe(start);
      if (user !== undefined) expect(result.state.user).toBe(user);
      if (workdir !== undefined) expect(result.state.workdir).toBe(workdir);
      const seen = look === undefined ? '' : await builds.inside(result.state, look);
      for (const text of shows) expect(seen).toContain(text);
    },
  );

  test('an unchanged file is built from the cache, and only its last line again when that changes', async () => {
    const source = (last: string) => ({
      kind: 'dockerfile' as const,
      stages: parseDockerfile(`FROM debian:12\nRUN date +%N > /t1\nRUN ${last}`),
      templates: {},
    });
    await builds.built({ source: source('echo 1'), startsAsUser: false });
    const same = await builds.build({ source: source('echo 1'), startsAsUser: false });
    expect(same.log.match(/CACHED \[builder/g)?.length).toBe(2);
    const other = await builds.build({ source: source('echo 2'), startsAsUser: false });
    expect(other.log.match(/CACHED \[builder/g)?.length).toBe(1);
  });

  const runWithCache = (command: string, team: string) =>
    builds.built({
      source: {
        kind: 'dockerfile',
        stages: parseDockerfile(`FROM debian:12\nRUN --mount=type=cache,target=/cache ${command}`),
        templates: {},
      },
      startsAsUser: false,
      teamId: team,
    });

  test('what a team has put into its cache directory gets into no template of another team', async () => {
    await runWithCache('echo planted > /cache/tool', 'team-1');
    const install = 'cat /cache/tool > /installed 2>/dev/null || echo downloaded > /installed';
    expect(await builds.inside(await runWithCache(install, 'team-1'), 'cat /installed')).toBe('planted\n');
    expect(await builds.inside(await runWithCache(install, 'team-2'), 'cat /installed')).toBe('downloaded\n');
  });

  /** The file system considers itself whole. */
  const damagedInode = `
    set -e
    place=$(debugfs -R 'imap work/tool' "$1" | sed -nE 's/.*block ([0-9]+), offset (0x[0-9a-f]+).*/\\1 * 4096 + \\2/p')
    dd if=/dev/zero of="$1" bs=1 count=32 seek=$((place)) conv=notrunc
    e2fsck -p "$1"`;

  // A loss of power leaves any part of a disk unwritten. Blocks have 4 KiB; the superblock is in the first one.
  test.each([
    { name: 'no byte', damage: ['truncate', '--size=0'], kept: 'nothing' },
    { name: 'zeros alone', damage: ['fallocate', '--punch-hole', '--length=10GiB'], kept: 'nothing' },
    { name: 'no superblock', damage: ['fallocate', '--punch-hole', '--length=4KiB'], kept: 'planted' },
    {
      name: 'hardly more than a superblock',
      damage: ['fallocate', '--punch-hole', '--offset=4KiB', '--length=512MiB'],
      kept: 'nothing',
    },
    { name: 'no directory for builds', damage: ['debugfs', '-w', '-R', 'unlink work'], kept: 'nothing' },
    { name: 'a file of which the kernel reads nothing', damage: ['bash', '-c', damagedInode, '--'], kept: 'nothing' },
  ])('builds go on with a cache directory of which a loss of power has left $name', async ({ damage, kept }) => {
    const mounts = join(builds.test.dataDir, 'node/build-mounts');
    const before = new Set(readdirSync(mounts));
    // In each command, so that no step of another case is found in the cache instead.
    const team = newUuid();
    await runWithCache(`echo planted > /cache/tool # ${team}`, team);
    const [image = ''] = readdirSync(mounts).filter(name => !before.has(name));
    expect(Bun.spawnSync([...damage, join(mounts, image)]).exitCode).toBe(0);
    // The power came back after that.
    utimesSync(join(mounts, image), 0, 0);
    const none = 'rm -f /cache/tool && echo nothing > /found';
    const look = `cat /cache/tool > /found 2>/dev/null || { ${none}; } # ${team}`;
    expect(await builds.inside(await runWithCache(look, team), 'cat /found')).toBe(`${kept}\n`);
    await runWithCache(`echo again > /cache/tool # ${team}`, team);
  });
});
