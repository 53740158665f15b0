import { beforeAll, expect, test } from 'bun:test';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { finish, run, shell, type ProcessEvent } from './support/process.ts';
import { stream } from './support/rpc.ts';
import { sharedAgent } from './support/shared-agent.ts';
import { addUser, as } from './support/users.ts';

const agent = sharedAgent({
  init: { envVars: { E2B_SANDBOX: 'true', COLOUR: 'sandbox', PATH: '/opt/bin:/usr/bin:/bin' }, defaultUser: 'someone' },
});
beforeAll(async () => {
  addUser(agent, 'someone', 4321, { readers: 4400, writers: 4401 });
});

test('start comes first, end comes last with the exit code', async () => {
  const zero = await shell(agent, 'echo out; echo err >&2');
  expect(zero).toMatchObject({
    stdout: 'out\n',
    stderr: 'err\n',
    order: ['start', 'data', 'end'],
    end: { exited: true, status: 'exit status 0' },
  });
  expect(zero.end).not.toHaveProperty('exitCode');
  expect(zero.end).not.toHaveProperty('error');
  expect(zero.error).toBeUndefined();
  expect((await shell(agent, 'exit 3')).end).toEqual({
    exitCode: 3,
    exited: true,
    status: 'exit status 3',
    error: 'exit status 3',
  });
});

test.each([
  ['KILL', 'signal: killed'],
  ['TERM', 'signal: terminated'],
  ['SEGV', 'signal: segmentation fault'],
  ['HUP', 'signal: hangup'],
])('the end by SIG%s is told', async (signal, status) => {
  expect((await shell(agent, `kill -${signal} $$`)).end).toEqual({ exitCode: -1, status, error: status });
});

test('a start with a field of the wrong type is refused before anything has begun', async () => {
  const marker = '/tmp/began';
  const process = { cmd: '/usr/bin/touch', args: [marker] };
  for (const wrong of [{ tag: 5 }, { stdin: 'yes' }, { pty: { size: { cols: 'wide' } } }]) {
    const events = await stream<ProcessEvent>(agent, 'process.Process/Start', { process, ...wrong });
    expect(await finish(events)).toMatchObject({ order: [], error: { code: 'invalid_argument' } });
  }
  // Process 1 starts programs in order; this gives time to one that began earlier.
  await shell(agent, 'sleep 0.2');
  expect(existsSync(agent.path(marker))).toBe(false);
});

test('a program that is not there or can not be run ends as a shell would say it', async () => {
  expect(await run(agent, 'no-such-program')).toMatchObject({
    end: { exitCode: 127, exited: true },
    stderr: 'sh: no-such-program: not found\n',
  });
  expect((await run(agent, '/no/such/program')).end?.exitCode).toBe(127);
  writeFileSync(agent.path('/tmp/not-executable'), 'x');
  expect(await run(agent, '/tmp/not-executable')).toMatchObject({
    end: { exitCode: 126 },
    stderr: 'sh: /tmp/not-executable: Permission denied\n',
  });
  expect((await run(agent, '/tmp')).end?.exitCode).toBe(126);
  expect((await run(agent, '')).end?.exitCode).toBe(127);
});

test('a script without a first line naming its shell is run by the shell', async () => {
  writeFileSync(agent.path('/tmp/script'), 'echo "$0 $1"\n');
  chmodSync(agent.path('/tmp/script'), 0o755);
  expect((await run(agent, '/tmp/script', ['an argument'])).stdout).toBe('/tmp/script an argument\n');
});

test('programs are searched in the PATH of the new process', async () => {
  mkdirSync(agent.path('/opt/bin'), { recursive: true });
  writeFileSync(agent.path('/opt/bin/colour'), '#!/bin/sh\necho found\n');
  chmodSync(agent.path('/opt/bin/colour'), 0o755);
  expect((await run(agent, 'colour')).stdout).toBe('found\n');
  expect(
    (await run(agent, 'colour', [], { process: { cmd: 'colour', envs: { PATH: '/usr/bin:/bin' } } })).end?.exitCode,
  ).toBe(127);
});

test('the environment is the user, then the sandbox, then the call, and nothing else', async () => {
  const { stdout } = await run(agent, 'env', [], { process: { cmd: 'env', envs: { COLOUR: 'call', EMPTY: '' } } });
  expect(stdout.trim().split('\n').sort()).toEqual([
    'COLOUR=call',
    'E2B_SANDBOX=true',
    'EMPTY=',
    'HOME=/home/someone',
    'LANG=C.UTF-8',
    'LOGNAME=someone',
    'PATH=/opt/bin:/usr/bin:/bin',
    'USER=someone',
  ]);
});

test('a process has the identity of the default user, or of the one that is named', async () => {
  expect((await run(agent, 'id')).stdout).toContain(
    'uid=4321(someone) gid=4321(someone) groups=4321(someone),4400(readers),4401(writers)',
  );
  expect((await run(agent, 'id', ['-u'], { headers: as('root') })).stdout).toBe('0\n');
  const root = await shell(agent, 'echo $HOME $USER; grep ^Groups /proc/self/status', { headers: as('root') });
  expect(root.stdout).toMatch(/^\/root root\nGroups:\s+0 *\n$/);
});

test('numbers name users that have no entry', async () => {
  expect((await shell(agent, 'id -u; id -g; pwd', { headers: as('7777') })).stdout).toBe('7777\n0\n/\n');
});

test('an unknown user is refused with the text that clients compare', async () => {
  const { error, end } = await run(agent, 'true', [], { headers: as('nobody-here') });
  expect(error).toEqual({ code: 'unauthenticated', message: "invalid username: 'nobody-here'" });
  expect(end).toBeUndefined();
});

test('the working directory is the home, or what is asked for', async () => {
  mkdirSync(agent.path('/home/someone/sub'), { recursive: true });
  const pwd = async (cwd?: string) =>
    (await run(agent, 'pwd', [], { process: { cmd: 'pwd', ...(cwd === undefined ? {} : { cwd }) } })).stdout.trim();
  expect(await pwd()).toBe('/home/someone');
  expect(await pwd('')).toBe('/home/someone');
  expect(await pwd('/usr')).toBe('/usr');
  expect(await pwd('sub')).toBe('/home/someone/sub');
  expect(await pwd('~')).toBe('/home/someone');
  expect(await pwd('~/sub')).toBe('/home/someone/sub');
});

test.each([['/no/such/folder'], ['~other'], ['/etc/passwd']])('the working directory %s is refused', async cwd => {
  const { error, pid } = await run(agent, 'pwd', [], { process: { cmd: 'pwd', cwd } });
  expect(error?.code).toBe('invalid_argument');
  expect(pid).toBe(0);
});

test('a user whose home is missing starts in the root', async () => {
  writeFileSync(
    agent.path('/etc/passwd'),
    `${await Bun.file(agent.path('/etc/passwd')).text()}homeless:x:4500:4500::/home/gone:/bin/sh\n`,
  );
  expect((await shell(agent, 'pwd; echo $HOME', { headers: as('homeless') })).stdout).toBe('/\n/home/gone\n');
});

test('a process starts clean: no descriptors, no blocked or ignored signals, a group of its own, umask 022', async () => {
  const { stdout, pid } = await shell(
    agent,
    'ls /proc/self/fd; umask; ps -o pgid= -p $$; grep -E "^Sig(Blk|Ign)" /proc/self/status',
  );
  const [zero, one, two, listing, umask, group, ...signals] = stdout
    .trim()
    .split('\n')
    .map(line => line.trim());
  expect([zero, one, two, listing, umask, group]).toEqual(['0', '1', '2', '3', '0022', String(pid)]);
  for (const line of signals) expect(line).toMatch(/\s0+$/);
  expect(signals.length).toBe(2);
});

test('a process comes after the agent for the processor and before it when memory is short', async () => {
  const { stdout } = await shell(agent, 'nice; cat /proc/self/oom_score_adj');
  const [nice, score] = stdout.trim().split('\n').map(Number);
  expect(nice).toBeGreaterThan(0);
  expect(score).toBeGreaterThanOrEqual(500);
  const agentScore = Number(await Bun.file(`/proc/${agent.agentPid()}/oom_score_adj`).text());
  expect(agentScore).toBeLessThan(score ?? 0);
});

test('its pipes can be opened again by name, also by an ordinary user', async () => {
  const { stdout, stderr } = await shell(agent, 'echo to stdout > /dev/stdout; echo to stderr > /dev/stderr');
  expect({ stdout, stderr }).toEqual({ stdout: 'to stdout\n', stderr: 'to stderr\n' });
});

test('without stdin a program reads nothing; by default there is one', async () => {
  expect((await run(agent, 'cat')).end?.status).toBe('exit status 0');
  const { stdout } = await shell(agent, 'readlink /proc/self/fd/0');
  expect(stdout).toBe('/dev/null\n');
});

test('output is delivered whole and in order, in pieces of at most 32 KiB', async () => {
  const { stdout, end } = await shell(agent, 'i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done');
  expect(stdout).toBe(Array.from({ length: 20_000 }, (_, index) => `line ${index}\n`).join(''));
  expect(end?.status).toBe('exit status 0');
});

test('arguments and bytes pass as they are', async () => {
  const odd = 'tab\t newline\n quote" dollar$HOME ümlaut 漢字 🎉';
  expect((await run(agent, 'printf', ['%s', odd])).stdout).toBe(odd);
  const bytes = await shell(agent, "printf '\\377\\000\\376'");
  expect(bytes.stdout).toBe(Buffer.from([0xff, 0, 0xfe]).toString());
});

test.each([
  ['a zero byte in an argument', { cmd: 'echo', args: ['a\0b'] }],
  ['a name of a variable with =', { cmd: 'env', envs: { 'A=B': 'c' } }],
  ['arguments that are no list', { cmd: 'echo', args: 'text' as unknown as string[] }],
])('%s is refused', async (_, process) => {
  expect((await run(agent, 'x', [], { process })).error?.code).toBe('invalid_argument');
});

test('a command line that the kernel does not take fails instead of hanging', async () => {
  const { end, error } = await run(agent, '/bin/true', ['x'.repeat(200_000)]);
  expect(end?.exitCode === 126 || error !== undefined).toBe(true);
});

test('programs are children of process 1, also while many are started at once', async () => {
  const parents = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => (await shell(agent, `echo $PPID; exit ${index}`)).stdout),
  );
  expect(new Set(parents)).toEqual(new Set(['1\n']));
});
