import { beforeEach, expect, test } from 'bun:test';
import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readIfThere } from '../../src/base/small-file.ts';
import { shell } from './support/process.ts';
import { stream, unary, unaryError, type RpcStream } from './support/rpc.ts';
import { sharedAgent } from './support/shared-agent.ts';

const agent = sharedAgent();

type Event = { name: string; type: string; entry?: { name: string; path: string; size?: string } };
type WatchMessage = { start?: object; filesystem?: Event; keepalive?: object };

const root = '/tmp/watched';
const inside = (path: string) => agent.path(`${root}/${path}`);

beforeEach(() => {
  rmSync(agent.path(root), { recursive: true, force: true });
  mkdirSync(inside('sub'), { recursive: true });
});

async function watch(more: object = {}, headers = {}): Promise<RpcStream<WatchMessage>> {
  const events = await stream<WatchMessage>(agent, 'filesystem.Filesystem/WatchDir', { path: root, ...more }, headers);
  expect(await events.next()).toEqual({ start: {} });
  return events;
}

const short = ({ name, type }: Event) => `${type.slice('EVENT_TYPE_'.length).toLowerCase()} ${name}`;

/** All events up to the creation of a file that marks the end. */
async function eventsUntilMark(events: RpcStream<WatchMessage>): Promise<Event[]> {
  const mark = `mark-${Math.random()}`;
  writeFileSync(inside(mark), '');
  const seen: Event[] = [];
  for (;;) {
    const message = await events.next();
    if (!message) throw new Error('the watch ended');
    if (message.filesystem?.name === mark) return seen;
    if (message.filesystem && !message.filesystem.name.startsWith('mark-')) seen.push(message.filesystem);
  }
}

/** How many directories the kernel watches for the agent (proc(5), fdinfo of an inotify descriptor). */
function kernelWatches(): number {
  const folder = `/proc/${agent.agentPid()}/fdinfo`;
  return (
    readdirSync(folder)
      // Meanwhile the agent opens and closes other files.
      .map(fd => readIfThere(join(folder, fd))?.match(/^inotify wd:/gm)?.length ?? 0)
      .reduce((sum, count) => sum + count, 0)
  );
}

/** All events until each of `wanted` was reported. */
async function eventsUntilAll(events: RpcStream<WatchMessage>, wanted: string[]): Promise<string[]> {
  const seen: string[] = [];
  const missing = new Set(wanted);
  while (missing.size > 0) {
    const message = await events.next();
    if (!message) throw new Error(`the watch ended before it told of ${[...missing].slice(0, 5).join(', ')}`);
    if (!message.filesystem || message.filesystem.name.startsWith('mark-')) continue;
    seen.push(short(message.filesystem));
    missing.delete(short(message.filesystem));
  }
  return seen;
}

/** Runs a shell line in the watched directory and answers the reported events. */
async function eventsOf(events: RpcStream<WatchMessage>, line: string): Promise<string[]> {
  const { end } = await shell(agent, `cd ${root} && ${line}`);
  expect(end?.status).toBe('exit status 0');
  return (await eventsUntilMark(events)).map(short);
}

test('each kind of change has its event', async () => {
  await using events = await watch();
  expect(await eventsOf(events, ': > new')).toEqual(['create new']);
  expect(await eventsOf(events, 'echo x >> new')).toEqual(['write new']);
  expect(await eventsOf(events, 'chmod 600 new')).toEqual(['chmod new']);
  expect(await eventsOf(events, 'setfattr -n user.x -v y new 2>/dev/null || touch -d @0 new')).toEqual(['chmod new']);
  expect(await eventsOf(events, 'mv new renamed')).toEqual(['rename new', 'create renamed']);
  expect(await eventsOf(events, 'mv renamed /tmp/elsewhere')).toEqual(['rename renamed']);
  expect(await eventsOf(events, 'mv /tmp/elsewhere back')).toEqual(['create back']);
  expect(await eventsOf(events, 'rm back')).toEqual(['remove back']);
  expect(await eventsOf(events, 'echo content > created')).toEqual(['create created', 'write created']);
  expect(await eventsOf(events, 'ln created hard; ln -s created soft')).toContain('create soft');
});

test('without recursion only the directory itself is watched', async () => {
  await using events = await watch();
  expect(await eventsOf(events, 'echo x > sub/file; mkdir made; touch made/file')).toEqual(['create made']);
});

test('with recursion everything below is told, also in what is made later', async () => {
  await using events = await watch({ recursive: true });
  expect(await eventsOf(events, 'echo x > sub/file')).toEqual(['create sub/file', 'write sub/file']);
  await shell(agent, `cd ${root} && mkdir -p a/b/c && echo 1 > a/b/c/one && echo 2 > a/b/c/two`);
  const nested = await eventsUntilAll(events, [
    'create a',
    'create a/b',
    'create a/b/c',
    'create a/b/c/one',
    'write a/b/c/one',
    'create a/b/c/two',
    'write a/b/c/two',
  ]);
  expect(nested.filter(event => event.startsWith('create')).length).toBe(5);
  // A write at the moment its directory is found may be reported twice: the second report may come after all others.
  await eventsOf(events, ':');
  expect(await eventsOf(events, 'echo more >> a/b/c/one')).toEqual(['write a/b/c/one']);
  expect(await eventsOf(events, 'rm -r a')).toEqual(
    expect.arrayContaining(['remove a/b/c/one', 'remove a/b/c', 'remove a/b', 'remove a']),
  );
});

test('no file of a burst of new directories is missed, and none is told twice', async () => {
  await using events = await watch({ recursive: true });
  const numbers = Array.from({ length: 300 }, (_, index) => index + 1);
  await shell(agent, `cd ${root} && for i in $(seq 300); do mkdir -p d$i/e/f && echo x > d$i/e/f/g; done`);
  // Reports about a directory that was found come once it was looked at: they may come after a later mark.
  const seen = await eventsUntilAll(
    events,
    numbers.flatMap(number => [`create d${number}/e/f/g`, `write d${number}/e/f/g`]),
  );
  seen.push(...(await eventsUntilMark(events)).map(short));
  const created = seen.filter(event => event.startsWith('create'));
  expect(created.length).toBe(1200);
  expect(new Set(created).size).toBe(created.length);
});

test('a directory that is renamed keeps being watched under its new name', async () => {
  await using events = await watch({ recursive: true });
  await eventsOf(events, 'mkdir -p sub/deep');
  expect(await eventsOf(events, 'mv sub moved')).toEqual(['rename sub', 'create moved']);
  expect(await eventsOf(events, 'echo x > moved/deep/file')).toEqual([
    'create moved/deep/file',
    'write moved/deep/file',
  ]);
});

test('a directory that leaves is watched no more, one that comes in is told with its content', async () => {
  await using events = await watch({ recursive: true });
  await eventsOf(events, 'mkdir -p sub/deep');
  expect(await eventsOf(events, 'mv sub /tmp/left')).toEqual(['rename sub']);
  while (kernelWatches() > 1) await Bun.sleep(5);
  expect(await eventsOf(events, 'echo x > /tmp/left/deep/file')).toEqual([]);
  await shell(agent, `mv /tmp/left ${root}/back`);
  await eventsUntilAll(events, ['create back', 'create back/deep', 'create back/deep/file', 'write back/deep/file']);
  expect(await eventsOf(events, 'echo y >> back/deep/file')).toEqual(['write back/deep/file']);
});

test('links to directories are entries, not ways out', async () => {
  mkdirSync(agent.path('/tmp/outside'), { recursive: true });
  symlinkSync('/tmp/outside', inside('link'));
  await using events = await watch({ recursive: true });
  expect(await eventsOf(events, 'ln -s /tmp/outside second; echo x > /tmp/outside/file')).toEqual(['create second']);
});

test('a watched link is followed, and the directory itself is told of by a dot', async () => {
  symlinkSync(root, agent.path('/tmp/to-watched'));
  await using events = await watch({ path: '/tmp/to-watched' });
  expect(await eventsOf(events, 'chmod 711 .')).toEqual(['chmod .']);
});

test('the end of the watched directory does not end the watch', async () => {
  await using events = await watch({}, { 'connect-timeout-ms': '700' });
  rmSync(agent.path(root), { recursive: true });
  const seen: string[] = [];
  for (let message = await events.next(); message; message = await events.next())
    if (message.filesystem) seen.push(short(message.filesystem));
  expect(seen).toContain('remove .');
  expect(events.error?.code).toBe('deadline_exceeded');
});

test('entries are told where they are asked for and still there', async () => {
  await using events = await watch({ includeEntry: true, recursive: true });
  await shell(agent, `cd ${root} && echo hello > sub/file && sync && mv sub/file sub/other && rm sub/other`);
  const seen = await eventsUntilMark(events);
  for (const { type, entry } of seen)
    if (entry) expect(['EVENT_TYPE_CREATE', 'EVENT_TYPE_WRITE', 'EVENT_TYPE_CHMOD']).toContain(type);
  await shell(agent, `echo stays > ${root}/sub/stays`);
  const write = (await eventsUntilMark(events)).find(event => event.type === 'EVENT_TYPE_WRITE');
  expect(write).toMatchObject({ name: 'sub/stays', entry: { name: 'stays', path: `${root}/sub/stays`, size: '6' } });
});

test('silent watches are kept alive', async () => {
  await using events = await watch({}, { 'keepalive-ping-interval': '1' });
  expect(await events.next()).toEqual({ keepalive: {} });
});

test('a path that can’t be watched is refused', async () => {
  const refused = async (path: string) => {
    const events = await stream<WatchMessage>(agent, 'filesystem.Filesystem/WatchDir', { path });
    expect(await events.next()).toBeUndefined();
    return events.error?.code;
  };
  expect(await refused('/tmp/nothing-here')).toBe('not_found');
  expect(await refused('/etc/passwd')).toBe('invalid_argument');
  expect(await unaryError(agent, 'filesystem.Filesystem/CreateWatcher', { path: '/tmp/nothing-here' })).toBe(
    '404 not_found',
  );
  expect(await unaryError(agent, 'filesystem.Filesystem/CreateWatcher', { path: '/etc/passwd' })).toBe(
    '400 invalid_argument',
  );
});

test('two watches of one directory both see everything, and one may end', async () => {
  await using first = await watch({ recursive: true });
  const second = await watch();
  writeFileSync(inside('seen-by-both'), '');
  expect((await eventsUntilMark(first)).map(short)).toContain('create seen-by-both');
  expect((await eventsUntilMark(second)).map(short)).toContain('create seen-by-both');
  await second[Symbol.asyncDispose]();
  await eventsUntilMark(first);
  expect(await eventsOf(first, ': > afterwards')).toEqual(['create afterwards']);
});

test('watchers that are polled lose nothing between the polls', async () => {
  const { body } = await unary(agent, 'filesystem.Filesystem/CreateWatcher', { path: root, recursive: true });
  const watcherId = body['watcherId'] as string;
  expect(watcherId).toMatch(/^w[a-z0-9]{20}$/);
  const take = async () =>
    ((await unary(agent, 'filesystem.Filesystem/GetWatcherEvents', { watcherId })).body['events'] ?? []) as Event[];
  await shell(agent, `cd ${root} && for i in $(seq 500); do : > sub/f$i; done`);
  const seen: Event[] = [];
  while (seen.filter(event => event.type === 'EVENT_TYPE_CREATE').length < 500) seen.push(...(await take()));
  expect(new Set(seen.map(event => event.name)).size).toBe(500);
  expect(await take()).toEqual([]);
  expect((await unary(agent, 'filesystem.Filesystem/RemoveWatcher', { watcherId })).body).toEqual({});
  for (const method of ['GetWatcherEvents', 'RemoveWatcher'])
    expect(await unaryError(agent, `filesystem.Filesystem/${method}`, { watcherId })).toBe('404 not_found');
});

test('a poll has what happened before it, also in directories that are new', async () => {
  const { body } = await unary(agent, 'filesystem.Filesystem/CreateWatcher', {
    path: root,
    recursive: true,
    includeEntry: true,
  });
  const watcherId = body['watcherId'] as string;
  for (let index = 0; index < 200; index++) {
    mkdirSync(inside(`new${index}/deep`), { recursive: true });
    writeFileSync(inside(`new${index}/deep/file`), 'x');
    const answer = await unary(agent, 'filesystem.Filesystem/GetWatcherEvents', { watcherId });
    const events = ((answer.body['events'] ?? []) as Event[]).map(short);
    expect(events).toContain(`create new${index}/deep/file`);
  }
  await unary(agent, 'filesystem.Filesystem/RemoveWatcher', { watcherId });
});

test('a poll does not wait for ever for a pump that somebody has stopped', async () => {
  const { body } = await unary(agent, 'filesystem.Filesystem/CreateWatcher', { path: root });
  const watcherId = body['watcherId'] as string;
  const { stdout } = await shell(agent, 'pgrep -f "init [p]ump"');
  await shell(agent, `kill -STOP ${stdout.trim()}`);
  expect((await unary(agent, 'filesystem.Filesystem/GetWatcherEvents', { watcherId })).status).toBe(200);
  await unary(agent, 'filesystem.Filesystem/RemoveWatcher', { watcherId });
});

test('a file that has no name yet is not told of', async () => {
  await using events = await watch();
  const seen = await eventsOf(
    events,
    `python3 -c 'import os; fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600); os.write(fd, b"x"); os.chmod(fd, 0o644); os.link(f"/proc/self/fd/{fd}", "named", src_dir_fd=0, follow_symlinks=True)' && : > '#1' && echo x >> '#1'`,
  );
  expect(seen.filter(event => !/ (named|#1)$/.test(event))).toEqual([]);
  expect(seen).toContain('create named');
  expect(seen).toContain('write #1');
});

test('snake_case names are understood', async () => {
  const { body } = await unary(agent, 'filesystem.Filesystem/CreateWatcher', { path: root, include_entry: true });
  const watcherId = body['watcherId'] as string;
  writeFileSync(inside('file'), '');
  let events: Event[] = [];
  while (events.length === 0)
    events = ((await unary(agent, 'filesystem.Filesystem/GetWatcherEvents', { watcher_id: watcherId })).body[
      'events'
    ] ?? []) as Event[];
  expect(events[0]?.entry?.path).toBe(`${root}/file`);
  await unary(agent, 'filesystem.Filesystem/RemoveWatcher', { watcher_id: watcherId });
});

test('lost events are found again by looking, and the directories that lost some are told', async () => {
  await using events = await watch({ recursive: true });
  writeFileSync(inside('sub/before'), '');
  mkdirSync(inside('replaced'));
  await eventsUntilMark(events);
  // The pump that delivers the kernel's events is stopped until its queue (16384 events) has overflowed.
  const { stdout } = await shell(agent, 'pgrep -f "init [p]ump"');
  await shell(agent, `kill -STOP ${stdout.trim()}`);
  await shell(
    agent,
    `cd ${root} && i=0; while [ $i -lt 9000 ]; do echo x >> burst; echo x >> other; i=$((i+1)); done; mkdir -p late/deep; echo x > late/deep/file; rm sub/before; rmdir sub; rmdir replaced; mkdir replaced`,
  );
  await shell(agent, `kill -CONT ${stdout.trim()}`);
  await eventsUntilAll(events, [
    'create late',
    'create late/deep',
    'create late/deep/file',
    'write late/deep/file',
    'remove sub',
    'remove replaced',
    'create replaced',
    'write .',
  ]);
  // Found directories are watched from then on.
  while (kernelWatches() < 4) await Bun.sleep(5);
  expect(await eventsOf(events, 'echo y >> late/deep/file')).toContain('write late/deep/file');
  expect(await eventsOf(events, ': > replaced/file')).toContain('create replaced/file');
});

test('a pump that somebody kills is replaced', async () => {
  await using events = await watch({ recursive: true });
  await shell(agent, 'pkill -9 -f "init [p]ump"');
  renameSync(inside('sub'), inside('renamed'));
  writeFileSync(inside('renamed/file'), 'x');
  await eventsUntilAll(events, ['write renamed/file']);
  expect(await eventsOf(events, ': > later')).toContain('create later');
});

test('nothing is left when nobody watches: no pump, no descriptor', async () => {
  const pumps = async () => (await shell(agent, 'pgrep -fc "init [p]ump"')).stdout.trim();
  await (await watch({ recursive: true }))[Symbol.asyncDispose]();
  while ((await pumps()) !== '0') await Bun.sleep(10);
  const { stdout } = await shell(agent, `readlink /proc/$(pgrep -of "agent[/]agent")/fd/* | grep -c inotify`);
  expect(stdout.trim()).toBe('0');
});
