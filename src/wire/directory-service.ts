import type { Log } from '../base/telemetry/log.ts';
import type { DirectoryProtocol } from '../protocol/directory.ts';
import { directoryTable } from '../protocol/wire/directory-table.ts';
import { proxyOf } from './call.ts';
import { checkedMethods } from './checked.ts';
import { connectionTo } from './connect.ts';
import { listenOn } from './listen.ts';

/**
 * Serves the directory of sandboxes at a unix socket to the edge, which runs as `uid`. `onGone`: called when the last
 * edge has disconnected.
 */
export function serveDirectory(
  directory: DirectoryProtocol,
  { path, uid, onGone }: { path: string; uid: number; onGone: () => void },
  log: Log,
): { stop(): void } {
  return listenOn(
    { path, caller: 'edge', uid, log },
    { methods: checkedMethods(directoryTable), implementation: directory, allGone: onGone },
  );
}

/** The directory that an api serves at a unix socket. */
export function directoryAt(path: string): DirectoryProtocol & { close(): void } {
  const connection = connectionTo(path, 'api');
  return {
    ...proxyOf<DirectoryProtocol>(directoryTable, checkedMethods(directoryTable), connection),
    close: () => connection.close(),
  };
}
