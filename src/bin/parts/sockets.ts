import { chmodSync, chownSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { apiFolders } from '../../api/installation/data-directory.ts';

/** The place of an installation on this machine: its number, and its directory of sockets. */
export type InstallationPlace = { installation: number; runDir: string };

/** The sockets through which the parts of an installation talk; each is for one of them only. */
export function socketsIn(runDir: string) {
  const folder = join(runDir, 'api');
  const data = join(runDir, 'api-data');
  return {
    nodeForApi: join(runDir, 'node-for-api.sock'),
    nodeForEdge: join(runDir, 'node-for-edge.sock'),
    /** Not a socket: what this machine's gate has heard from control. */
    heard: join(runDir, 'gate-heard.json'),
    /** Owned by the api: it holds what the api serves. */
    folder,
    api: join(folder, 'http.sock'),
    directory: join(folder, 'directory.sock'),
    /**
     * Owned by root: the api's own folders of the data directory are mounted in it under the same names, and only the
     * api sees them. In a folder of its own the api could place a link, and root would mount on the link's target.
     */
    data,
    /** Mount point of the cluster's store if that is a directory; only the api sees it. */
    store: join(data, 'store'),
  };
}

const setGroup = 0o2000;
const ownerAllGroupPass = 0o710;
const ownerAllOthersPass = 0o711;

/**
 * Makes the folder in which the api serves the edge, which belongs to user `api` and which the group of `edge` may
 * enter; and the places for the api's folders. If nothing is mounted there, the api keeps its files in them.
 */
export function makeSocketFolder(runDir: string, { api, edge }: { api: number; edge: number }): void {
  const { folder, data } = socketsIn(runDir);
  mkdirSync(folder, { recursive: true });
  chownSync(folder, api, edge);
  chmodSync(folder, setGroup | ownerAllGroupPass);
  mkdirSync(data, { recursive: true, mode: ownerAllOthersPass });
  chmodSync(data, ownerAllOthersPass);
  for (const path of apiFolders.map(name => join(data, name))) {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    chownSync(path, api, api);
  }
}
