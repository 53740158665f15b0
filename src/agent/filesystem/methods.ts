import type { Method } from '../connect/call.ts';
import type { Filesystem, FilesystemHost } from './operations.ts';

/** Limit of a message that names a path or two. */
const messageBytesMax = 64 << 10;

const unaryNames = [
  'Stat',
  'MakeDir',
  'Move',
  'Remove',
  'ListDir',
  'CreateWatcher',
  'GetWatcherEvents',
  'RemoveWatcher',
];

/**
 * The service `filesystem.Filesystem`. It acts as the sandbox's root; the user decides home and ownership. Its code is
 * loaded at the first use: a standby sandbox does without it.
 */
export function filesystemMethods(agent: FilesystemHost): [path: string, method: Method][] {
  let loaded: Promise<Filesystem> | undefined;
  const filesystem = () => (loaded ??= import('./operations.ts').then(({ openFilesystem }) => openFilesystem(agent)));
  const unary = unaryNames.map((name): [string, Method] => [
    `/filesystem.Filesystem/${name}`,
    {
      kind: 'unary',
      messageBytesMax,
      answer: async (message, call) => (await filesystem()).unary[name]?.(message, call),
    },
  ]);
  const watchDir: Method = {
    kind: 'server-stream',
    open: async (...opening) => (await filesystem()).watchDir(...opening),
  };
  return [...unary, ['/filesystem.Filesystem/WatchDir', watchDir]];
}
