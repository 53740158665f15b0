import { rename, rm, stat } from 'node:fs/promises';
import { AtollError } from '../../base/error.ts';
import type { Agent } from '../agent.ts';
import type { Call, Method } from '../connect/call.ts';
import { stringField, uint32Field, type Message } from '../connect/message.ts';
import type { Outbox } from '../connect/outbox.ts';
import { resolvePath } from '../sandbox/paths.ts';
import { findUser, type User } from '../sandbox/users.ts';
import { makeDirectories, makeParents } from './directories.ts';
import { readEntry, type EntryInfo } from './entry-info.ts';
import { fileError } from './errno.ts';
import { listDirectory } from './list.ts';
import { watchDirectory } from './watch/watch-dir.ts';
import { readWatchTarget } from './watch/watch-target.ts';

/** A message that names a path or two. */
const messageBytesMax = 64 << 10;

type Asked = { message: Message; call: Call; user: User; resolve(name: string): string };

/** The service `filesystem.Filesystem`. Everything is done as root of the sandbox; the user decides home and ownership. */
export function filesystemMethods(agent: Agent): [path: string, method: Method][] {
  const unary = (name: string, answer: (agent: Agent, asked: Asked) => Promise<object>): [string, Method] => [
    `/filesystem.Filesystem/${name}`,
    { kind: 'unary', messageBytesMax, answer: (message, call) => answer(agent, ask(agent, message, call)) },
  ];
  return [
    unary('Stat', statEntry),
    unary('MakeDir', makeDir),
    unary('Move', move),
    unary('Remove', remove),
    unary('ListDir', list),
    unary('CreateWatcher', createWatcher),
    unary('GetWatcherEvents', getWatcherEvents),
    unary('RemoveWatcher', removeWatcher),
    ['/filesystem.Filesystem/WatchDir', { kind: 'server-stream', open: (message, call, outbox) => watchDir(agent, ask(agent, message, call), outbox) }],
  ];
}

function ask(agent: Agent, message: Message, call: Call): Asked {
  const { defaultUser, defaultWorkdir } = agent.settings();
  const user = findUser(call.username || defaultUser);
  return { message, call, user, resolve: name => resolvePath(stringField(message, name) ?? '', user, defaultWorkdir) };
}

async function statEntry(agent: Agent, { call, resolve }: Asked): Promise<object> {
  return { entry: await entryAt(agent, resolve('path'), call) };
}

async function makeDir(agent: Agent, { call, user, resolve }: Asked): Promise<object> {
  const path = resolve('path');
  const isNew = await makeDirectories(path, user).catch(error => Promise.reject(fileError(error, path, { ENOTDIR: 'internal', ENOENT: 'internal' })));
  if (!isNew) {
    const isDirectory = await stat(path).then(facts => facts.isDirectory(), () => false);
    throw isDirectory
      ? new AtollError('conflict', `directory '${path}' already exists`)
      : new AtollError('invalid', `path '${path}' already exists and is not a directory`);
  }
  return { entry: await entryAt(agent, path, call) };
}

async function move(agent: Agent, { call, user, resolve }: Asked): Promise<object> {
  const [source, destination] = [resolve('source'), resolve('destination')];
  await entryAt(agent, source, call);
  try {
    await makeParents(destination, user);
    await rename(source, destination);
  } catch (error) {
    throw fileError(error, destination, { ENOTDIR: 'internal', ENOENT: 'internal' });
  }
  return { entry: await entryAt(agent, destination, call) };
}

async function remove(_: Agent, { resolve }: Asked): Promise<object> {
  const path = resolve('path');
  await rm(path, { recursive: true, force: true }).catch(error => Promise.reject(fileError(error, path, { ENOTDIR: 'internal' })));
  return {};
}

async function list(agent: Agent, { message, call, resolve }: Asked): Promise<object> {
  const entries = await listDirectory(agent.native, resolve('path'), uint32Field(message, 'depth') ?? 1, { wantsShortEntries: call.wantsShortEntries });
  return entries.length === 0 ? {} : { entries };
}

async function watchDir(agent: Agent, { message, call, resolve }: Asked, outbox: Outbox): Promise<void> {
  await watchDirectory(agent, await readWatchTarget(message, resolve('path')), call, outbox);
}

async function createWatcher(agent: Agent, { message, resolve }: Asked): Promise<object> {
  return { watcherId: await agent.pollingWatchers.create(agent, await readWatchTarget(message, resolve('path'))) };
}

async function getWatcherEvents(agent: Agent, { message }: Asked): Promise<object> {
  const events = agent.pollingWatchers.take(stringField(message, 'watcherId') ?? '');
  return events.length === 0 ? {} : { events };
}

async function removeWatcher(agent: Agent, { message }: Asked): Promise<object> {
  agent.pollingWatchers.remove(stringField(message, 'watcherId') ?? '');
  return {};
}

async function entryAt(agent: Agent, path: string, { wantsShortEntries }: Call): Promise<EntryInfo> {
  return readEntry(agent.native, path, { wantsShortEntries }).catch(error => Promise.reject(fileError(error, path)));
}
