import { afterAll, beforeAll, expect, test } from 'bun:test';
import { gzipSync } from 'node:zlib';
import { writeTar } from '../../src/base/write-tar.ts';
import { parseDockerfile } from '../../src/builder/dockerfile/parse.ts';
import { runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startBuildNode, step, type BuildNode } from './support/build-node.ts';

let builds: BuildNode;
beforeAll(async () => {
  builds = await startBuildNode();
}, 600_000);
afterAll(() => builds[Symbol.asyncDispose]());

const file = (path: string, content: string, mode = 0o644) => ({
  path,
  type: 'file' as const,
  attributes: { mode, uid: 4242, gid: 4242 },
  content: Buffer.from(content),
});
const directory = (path: string) => ({
  path,
  type: 'directory' as const,
  attributes: { mode: 0o750, uid: 4242, gid: 4242 },
});
const link = (path: string, target: string) => ({
  path,
  type: 'symlink' as const,
  attributes: { mode: 0o777, uid: 4242, gid: 4242 },
  target,
});

test('commands run as the current user, in the current directory, with the environment', async () => {
  const { result, log } = await builds.build({
    steps: [
      step('RUN', 'echo "1:$(id -un):$PWD:${FOO:-unset}"'),
      step('ENV', 'FOO', 'b"a\\r', 'BAR', '$FOO-${HOME}-$(id)'),
      step('workdir', 'work/here'),
      step('RUN', 'echo "2:$(id -un):$PWD:$FOO:$BAR"; stat -c "3:%U:%a" /work; stat -c "made:%Y" /work/here'),
      step('RUN', 'echo "4:$(id -un)"', 'root'),
      step('USER', 'somebody'),
      step('RUN', 'echo "5:$(id -un):$HOME:$(sudo -n true 2>/dev/null && echo admin)"'),
      step('USER', 'boss', 'true'),
      step('RUN', 'echo "6:$(id -un):$(sudo -n id -un)"'),
    ],
  });
  expect(result.status).toBe('ready');
  expect(log).toContain('1:user:/home/user:unset');
  expect(log).toContain('2:user:/work/here:b"a\\r:b"a\\r-/home/user-$(id)');
  expect(log).toContain('3:user:755');
  // Programs that pack it reject times before 1980.
  const [, madeSeconds] = log.match(/made:(\d+)/) ?? [];
  expect(new Date(Number(madeSeconds) * 1000).getFullYear()).toBeGreaterThanOrEqual(1980);
  expect(log).toContain('4:root');
  expect(log).toContain('5:somebody:/home/somebody:');
  expect(log).not.toContain('5:somebody:/home/somebody:admin');
  expect(log).toContain('6:boss:root');
  expect(result).toMatchObject({ state: { user: 'boss', workdir: '/work/here' } });
});

test('a second build runs nothing, and a changed step runs with all after it', async () => {
  const steps = (middle: string) => [
    step('RUN', 'date +%N > /tmp/first'),
    step('RUN', middle),
    step('RUN', 'date +%N > /tmp/last'),
  ];
  const first = await builds.built({ steps: steps('true # cached') });
  const again = await builds.build({ steps: steps('true # cached') });
  expect(again.result).toMatchObject({ status: 'ready' });
  expect(again.log.match(/CACHED \[builder \d\/3\]/g)).toEqual([
    'CACHED [builder 1/3]',
    'CACHED [builder 2/3]',
    'CACHED [builder 3/3]',
  ]);
  const changed = await builds.build({ steps: steps('touch /tmp/changed') });
  expect(changed.log.match(/CACHED \[builder \d\/3\]/g)).toEqual(['CACHED [builder 1/3]']);
  const forced = steps('true # cached').map((each, index) => ({ ...each, force: index === 1 }));
  expect((await builds.build({ steps: forced })).log.match(/CACHED \[builder \d\/3\]/g)).toEqual([
    'CACHED [builder 1/3]',
  ]);
  expect((await builds.build({ steps: steps('true # cached'), force: true })).log).not.toContain('CACHED');
  // The same file in two sandboxes of the cached layers.
  expect(await builds.inside(first, 'cat /tmp/last')).toBe(await builds.inside(first, 'cat /tmp/last'));
});

test('builds at the same time share the steps that they have in common', async () => {
  const steps = [step('RUN', 'sleep 0.5; date +%N > /tmp/shared')];
  const states = await Promise.all([1, 2, 3].map(() => builds.built({ steps })));
  const layers = new Set(states.map(state => state.layers.slice(0, -1).join()));
  expect(layers.size).toBe(1);
});

test('everything that a step does to files is in the next step and in sandboxes', async () => {
  const prepare =
    'mkdir -p /t/dir/sub /t/gone /t/moved/deep /t/opaque && echo a >/t/dir/a && echo b >/t/opaque/old && echo c >/t/moved/deep/c && ln /t/dir/a /t/dir/hard' +
    ' && ln -s dir /t/link && mkfifo /t/pipe && touch -d @1234567890.123456789 /t/dir/sub && cp /bin/true /t/cap;' +
    " chown 1000:27 /t/dir/sub; chmod 4750 /t/dir/sub; python3 -c \"import os; os.setxattr('/t/dir/a', 'user.note', b'x'); os.setxattr('/t/cap', 'security.capability', bytes.fromhex('0100000200200000000000000000000000000000'))\"; printf \"\\xff\\xfe\" >\"/t/$(printf \"n\\303\\244me\")\"";
  const change =
    'rm -rf /t/gone /t/opaque /t/dir/a && mkdir /t/opaque && echo n >/t/opaque/new && mv /t/moved /t/elsewhere && echo more >>/t/elsewhere/deep/c';
  const state = await builds.built({ steps: [step('RUN', prepare, 'root'), step('RUN', change, 'root')] });
  const seen = await builds.inside(
    state,
    'cd /t; ls | sort | tr "\\n" " "; echo; ls opaque dir; cat elsewhere/deep/c; stat -c "%u:%g:%a:%Y" dir/sub; cat link/hard; stat -c %F pipe; ' +
      "python3 -c \"import os; print(os.getxattr('/t/dir/hard', 'user.note'))\"; python3 -c \"import os; print(os.getxattr('/t/cap', 'security.capability').hex())\"",
  );
  expect(seen).toContain('cap dir elsewhere link näme opaque pipe');
  expect(seen).toContain('opaque:\nnew');
  expect(seen).not.toContain('old');
  expect(seen).toContain('c\nmore');
  expect(seen).toContain('1000:27:4750:1234567890');
  expect(seen).toContain("b'x'");
  expect(seen).toContain('fifo');
  expect(seen).toContain('0100000200200000');
});

test('COPY puts files where it says, with the owner and mode that it says', async () => {
  const archive = writeTar([
    directory('src'),
    file('src/a.txt', 'A'),
    directory('src/sub'),
    file('src/sub/run.sh', 'run', 0o755),
    link('src/link', 'a.txt'),
    file('single.txt', 'S'),
  ]);
  const hash = builds.upload(gzipSync(archive));
  const copy = (...args: string[]) => ({ ...step('COPY', ...args), filesHash: hash });
  const state = await builds.built({
    steps: [
      step(
        'RUN',
        'sudo mkdir -p /real/keep /existing && sudo chmod 700 /real/keep && sudo ln -s /real /alias && echo old | sudo tee /real/a.txt',
      ),
      copy('src', 'relative'),
      copy('src', '/alias'),
      copy('src/a.txt', '/renamed'),
      copy('single.txt', '/existing'),
      copy('single.txt', '/new/place/', 'root', '600'),
      copy('src/*.txt', '/globbed/'),
      copy('src', '/owned', 'nobody:sudo', '0700'),
      step('WORKDIR', '/work'),
      copy('single.txt', '.'),
    ],
  });
  const seen = await builds.inside(
    state,
    'cat /home/user/relative/a.txt /real/a.txt /renamed /existing/single.txt /work/single.txt; echo; readlink /home/user/relative/link; ' +
      'stat -c "%n %U:%G %a" /home/user/relative/sub/run.sh /real/keep /new/place/single.txt /new /new/place /owned /owned/sub /owned/sub/run.sh /owned/link /globbed/a.txt',
  );
  expect(seen).toContain('AAASS');
  expect(seen).toContain('a.txt\n');
  expect(seen).toContain('/home/user/relative/sub/run.sh user:user 755');
  expect(seen).toContain('/real/keep root:root 700');
  expect(seen).toContain('/new/place/single.txt root:root 600');
  for (const made of ['/new root:root 755', '/new/place root:root 755', '/owned nobody:sudo 755'])
    expect(seen.split('\n')).toContain(made);
  expect(seen).toContain('/owned/sub nobody:sudo 700');
  expect(seen).toContain('/owned/sub/run.sh nobody:sudo 700');
  expect(seen).toContain('/owned/link nobody:sudo 777');
  expect(seen).toContain('/globbed/a.txt user:user 644');
});

test('a failing step ends the build with its command, its last lines and its number', async () => {
  const { result, entries } = await builds.build({
    steps: [step('RUN', 'true'), step('RUN', 'echo the reason; exit 7')],
  });
  expect(result).toEqual({
    status: 'error',
    message: "failed to run command 'echo the reason; exit 7': exit status 7\nthe reason",
    step: '2',
  });
  expect(entries.at(-1)).toMatchObject({ level: 'error', step: '2' });
});

test.each([
  [
    step('RUN', 'id', 'stranger'),
    "failed to run command 'id': command failed: unauthenticated: invalid username: 'stranger'",
  ],
  [step('COPY', 'a', '/b'), 'COPY needs the hash of its files'],
  [{ ...step('COPY', 'a', '/b'), filesHash: 'f'.repeat(64) }, 'were not uploaded'],
  [step('ENV', 'ONLY'), 'pairs'],
  [step('DANCE'), 'DANCE is not a step'],
  [step('WORKDIR', '/etc/passwd/x'), "can't be a directory"],
])('%o is refused', async (bad, message) => {
  const { result } = await builds.build({ steps: [bad] });
  expect(result).toMatchObject({ status: 'error', step: '1' });
  expect(result.status === 'error' && result.message).toContain(message);
});

test('files that the archive does not hold, and names that lead out of it, are refused', async () => {
  const missing = builds.upload(writeTar([file('there', 'x')]));
  const outside = builds.upload(writeTar([file('../../outside', 'x')]));
  const one = await builds.build({ steps: [{ ...step('COPY', 'absent', '/x'), filesHash: missing }] });
  expect(one.result).toMatchObject({ status: 'error', message: 'absent is not among the uploaded files' });
  const two = await builds.build({ steps: [{ ...step('COPY', '.', '/x'), filesHash: outside }] });
  expect(two.result.status === 'error' && two.result.message).toContain('not allowed');
});

test('what one team has copied under a hash is not what another one gets that says the same of other files', async () => {
  const hash = builds.upload(writeTar([file('run.sh', 'of the first team')]));
  builds.uploadOf('team-2', hash, writeTar([file('run.sh', 'of the second team')]));
  const steps = [{ ...step('COPY', 'run.sh', '/run.sh'), filesHash: hash }];
  const [first, second] = [await builds.built({ steps }), await builds.built({ steps, teamId: 'team-2' })];
  expect(await builds.inside(first, 'cat /run.sh')).toBe('of the first team');
  expect(await builds.inside(second, 'cat /run.sh')).toBe('of the second team');
});

test('what a command has drawn for one team is not what another one gets for the same command', async () => {
  const draw = 'head -c 16 /dev/urandom | od -An -tx1 > /key';
  const stages = parseDockerfile(`FROM base\nRUN ${draw}`);
  const dockerfile = { kind: 'dockerfile' as const, stages, templates: { base: builds.base } };
  for (const request of [{ steps: [step('RUN', draw, 'root')] }, { source: dockerfile, startsAsUser: false }]) {
    const keyOf = async (teamId: string) => builds.inside(await builds.built({ ...request, teamId }), 'cat /key');
    const key = await keyOf('team-1');
    expect(await keyOf('team-1')).toBe(key);
    expect(await keyOf('team-2')).not.toBe(key);
  }
});

test('a build that is cancelled ends at once with the reason, and leaves no sandbox', async () => {
  const { node } = builds.test;
  const request = {
    buildId: 'cancelled',
    templateId: 't',
    teamId: 'team-1',
    source: { kind: 'state' as const, state: builds.base },
    steps: [step('RUN', 'echo begun; sleep 600')],
    force: false,
    startsAsUser: true,
    resources: { cpuCount: 1, memoryMiB: 256, diskMiB: 512 },
  };
  await node.builds.start(request);
  for (let next = 0, seen = ''; !seen.includes('begun');) {
    const progress = await node.builds.progress('cancelled', next, 5_000);
    next = progress.next;
    seen = progress.entries
      .map(entry => entry.message)
      .filter(message => !message.startsWith('['))
      .join();
  }
  await node.builds.cancel('cancelled', 'nobody wants it');
  const { result } = await node.builds.progress('cancelled', 0, 0);
  expect(result).toMatchObject({ status: 'error', message: 'nobody wants it', step: '1' });
  expect((await node.protocol.info()).sandboxCount).toBe(0);
});

test('a build ends when its time is over, and only as many run at a time as may, one of another team beside', async () => {
  await using short = await startBuildNode({ builds: { timeoutMs: 3_000, concurrentMax: 1 } });
  const steps = [step('RUN', 'echo begun; sleep 600')];
  const slow = [short.build({ steps }), short.build({ teamId: 'other', steps })];
  for (const request of [{}, { teamId: 'other' }])
    await expect(short.build(request)).rejects.toThrow('runs 1 builds, its maximum');
  const message = expect.stringContaining('took longer than') as string;
  for (const one of slow) expect((await one).result).toMatchObject({ status: 'error', message });
  expect((await short.test.node.protocol.info()).sandboxCount).toBe(0);
  await short.built({});
});

test('a step that takes more memory than the template has says so', async () => {
  const { result } = await builds.build({
    steps: [step('RUN', 'python3 -c "x = bytearray(900 << 20); print(len(x))"')],
  });
  expect(result.status === 'error' && result.message).toContain('out of memory');
});

test('a step can fill no more than its disk', async () => {
  const { result } = await builds.build({ steps: [step('RUN', 'head -c 900M /dev/zero >/var/tmp/big', 'root')] });
  expect(result.status === 'error' && result.message).toContain('No space left');
});

test('the start command must come up, and sandboxes have it running', async () => {
  const fails = await builds.build({ startCommand: 'echo broken >&2; exit 3', readyCommand: 'false' });
  expect(fails.result).toMatchObject({
    status: 'error',
    step: 'finalize',
    message: 'the start command failed: exit status 3\nbroken',
  });
  const startCommand = 'echo "$GREETING" >~/page && python3 -m http.server 8000';
  const readyCommand = 'curl -sf localhost:8000/page >/dev/null';
  const { result } = await builds.build({ steps: [step('ENV', 'GREETING', 'hi')], startCommand, readyCommand });
  if (result.status !== 'ready') throw new Error(result.message);
  const { state } = result;
  const request = builds.test.request({
    image: {
      templateId: 't',
      buildId: 'b',
      layers: state.layers,
      defaultUser: state.user,
      defaultWorkdir: '',
      buildEnv: state.env,
      startCommand,
      readyCommand,
    },
    accessToken: null,
  });
  const sandbox = await builds.test.node.protocol.create(request);
  try {
    const answer = await runInSandbox(
      builds.test.node.protocol,
      sandbox.sandboxId,
      'curl -s localhost:8000/page; echo "[$GREETING]"',
    );
    expect(answer.stdout).toBe('hi\n[]\n');
  } finally {
    await builds.test.node.protocol.kill(sandbox);
  }
});

test('what a build made outlives the platform, and nothing of it is left running', async () => {
  const steps = [step('RUN', 'date +%N > /tmp/kept')];
  await builds.built({ steps });
  await builds.test.restart();
  const { log } = await builds.build({ steps });
  expect(log).toContain('CACHED [builder 1/1]');
});
