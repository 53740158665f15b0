import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { apiFolders } from '../../api/installation/data-directory.ts';

/** Where an installation is on this machine: its number, and its directory of sockets. */
export type InstallationPlace = { installation: number; runDir: string };

/** The sockets over which the parts of an installation speak; each is for one of them alone. */
export function socketsIn(runDir: string) {
  const folder = join(runDir, 'api');
  return {
    nodeForApi: join(runDir, 'node-for-api.sock'),
    nodeForEdge: join(runDir, 'node-for-edge.sock'),
    /** No socket: what the gate of a machine has heard of control. */
    heard: join(runDir, 'gate-heard.json'),
    /** Owned by the api: what it serves is in there. */
    folder,
    api: join(folder, 'http.sock'),
    directory: join(folder, 'directory.sock'),
    /** Mount point of the api's own folders of the data directory, under the same names; only the api sees it. */
    data: join(folder, 'data'),
    /** Mount point of the cluster's store, where that is a directory; only the api sees it. */
    store: join(folder, 'data', 'store'),
  };
}

const setGroup = 0o2000;
const ownerAllGroupPass = 0o710;

/**
 * Makes the folder in which the api serves the edge: it belongs to user `api`, and the group of `edge` may pass. Where
 * nothing is mounted on the api's folders in there, it keeps its files in them.
 */
export function makeSocketFolder(runDir: string, { api, edge }: { api: number; edge: number }): void {
  const { folder, data } = socketsIn(runDir);
  mkdirSync(folder, { recursive: true });
  chownSync(folder, api, edge);
  chmodSync(folder, setGroup | ownerAllGroupPass);
  for (const name of apiFolders) mkdirSync(join(data, name), { recursive: true, mode: 0o700 });
  for (const path of [data, ...apiFolders.map(name => join(data, name))]) chownSync(path, api, api);
}
