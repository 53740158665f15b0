import { rename, stat } from 'node:fs/promises';
import { AtollError } from '../../base/error.ts';
import type { Agent } from '../agent.ts';
import type { Call } from '../connect/call.ts';
import { stringField, uint32Field, type Message } from '../connect/message.ts';
import type { Outbox } from '../connect/outbox.ts';
import { resolvePath } from '../sandbox/paths.ts';
import { findUser, type User } from '../sandbox/users.ts';
import { makeDirectories, makeParents } from './directories.ts';
import { readEntry, shortEntry } from './entry-info.ts';
import { fileError } from './errno.ts';
import { listDirectory } from './list.ts';
import { removePath } from './remove.ts';
import type { WatchSources } from './watch/event-feed.ts';
import { Inotify } from './watch/inotify.ts';
import { PollingWatchers } from './watch/polling-watchers.ts';
import { watchDirectory } from './watch/watch-dir.ts';
import { readWatchTarget } from './watch/watch-target.ts';

/** The service's operations by name, and the watches that they keep between calls. */
export type Filesystem = {
  unary: Record<string, (message: Message, call: Call) => Promise<object>>;
  watchDir(message: Message, call: Call, outbox: Outbox): Promise<void>;
};

/** What the methods of the file system use. */
export type FilesystemHost = Pick<Agent, 'initPath' | 'native' | 'journal' | 'settings'>;

/**
 * The methods of `filesystem.Filesystem`, with one inotify instance and one set of polling watchers for all of them.
 */
export function openFilesystem(agent: FilesystemHost): Filesystem {
  const watching: WatchSources = { native: agent.native, inotify: new Inotify(agent.native, agent.initPath) };
  const watchers = new PollingWatchers();
  const operation = (run: (agent: FilesystemHost, asked: Asked) => Promise<object>) => (message: Message, call: Call) =>
    run(agent, ask(agent, message, call));
  return {
    unary: {
      Stat: operation(statEntry),
      MakeDir: operation(makeDir),
      Move: operation(move),
      Remove: operation(remove),
      ListDir: operation(list),
      CreateWatcher: operation(async (_, { message, resolve }) => ({
        watcherId: await watchers.create(watching, await readWatchTarget(message, resolve('path'))),
      })),
      GetWatcherEvents: operation(async (_, { message }) =>
        nonEmpty('events', await watchers.take(stringField(message, 'watcherId') ?? '')),
      ),
      RemoveWatcher: operation(async (_, { message }) => {
        watchers.remove(stringField(message, 'watcherId') ?? '');
        return {};
      }),
    },
    async watchDir(message, call, outbox) {
      const { resolve } = ask(agent, message, call);
      await watchDirectory(watching, await readWatchTarget(message, resolve('path')), call, outbox);
    },
  };
}

/** A call and what its message means: paths resolved, the user looked up. */
type Asked = { message: Message; call: Call; user: User; resolve(name: string): string };

function ask(agent: Pick<Agent, 'settings'>, message: Message, call: Call): Asked {
  const { defaultUser, defaultWorkdir } = agent.settings();
  const user = findUser(call.username || defaultUser);
  return { message, call, user, resolve: name => resolvePath(stringField(message, name) ?? '', user, defaultWorkdir) };
}

// Protobuf's JSON omits empty lists.
const nonEmpty = (name: string, list: unknown[]): object => (list.length === 0 ? {} : { [name]: list });

async function statEntry(agent: Pick<Agent, 'native'>, { call, resolve }: Asked): Promise<object> {
  return { entry: await entryAt(agent, resolve('path'), call) };
}

async function makeDir(agent: Pick<Agent, 'native' | 'journal'>, { call, user, resolve }: Asked): Promise<object> {
  const path = resolve('path');
  const isNew = await makeDirectories(path, user).catch(error =>
    Promise.reject(fileError(error, path, { ENOTDIR: 'internal', ENOENT: 'internal' })),
  );
  if (!isNew) {
    const isDirectory = await stat(path).then(
      facts => facts.isDirectory(),
      () => false,
    );
    throw isDirectory
      ? new AtollError('conflict', `directory '${path}' already exists`)
      : new AtollError('invalid', `path '${path}' already exists and is not a directory`);
  }
  agent.journal.add('info', 'filesystem', `made directory ${path}`, { event: 'mkdir', path });
  return { entry: await entryAt(agent, path, call) };
}

async function move(agent: Pick<Agent, 'native' | 'journal'>, { call, user, resolve }: Asked): Promise<object> {
  const [source, destination] = [resolve('source'), resolve('destination')];
  await entryAt(agent, source, call);
  try {
    await makeParents(destination, user);
    await rename(source, destination);
  } catch (error) {
    throw fileError(error, destination, { ENOTDIR: 'internal', ENOENT: 'internal' });
  }
  agent.journal.add('info', 'filesystem', `moved ${source} to ${destination}`, {
    event: 'move',
    path: source,
    destination,
  });
  return { entry: await entryAt(agent, destination, call) };
}

async function remove(agent: Pick<Agent, 'initPath' | 'journal'>, { resolve }: Asked): Promise<object> {
  const path = resolve('path');
  await removePath(path, agent.initPath);
  agent.journal.add('info', 'filesystem', `removed ${path}`, { event: 'remove', path });
  return {};
}

async function list(agent: Pick<Agent, 'native'>, { message, call, resolve }: Asked): Promise<object> {
  const entries = await listDirectory(agent.native, resolve('path'), uint32Field(message, 'depth') ?? 1);
  return nonEmpty('entries', call.wantsShortEntries ? entries.map(shortEntry) : entries);
}

async function entryAt(agent: Pick<Agent, 'native'>, path: string, { wantsShortEntries }: Call): Promise<object> {
  const entry = await readEntry(agent.native, path).catch(error => Promise.reject(fileError(error, path)));
  return wantsShortEntries ? shortEntry(entry) : entry;
}
