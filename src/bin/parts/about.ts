import { join } from 'node:path';

/** The node's report once it serves. */
export type NodeAbout = { installation: number; runDir: string; helperPid: number };

/** The api's report once it serves. */
export type ApiAbout = {
  apiKey: string;
  building: string[];
  /** Path of a link that signs the operator in at the dashboard; null where that is not built. */
  signInPath: string | null;
};

/** The edge's report once it serves. */
export type EdgeAbout = { port: number; tlsPort: number | null };

/** The sockets over which the parts of an installation speak; each is for one of them alone. */
export function socketsIn(runDir: string) {
  const folder = join(runDir, 'api');
  return {
    nodeForApi: join(runDir, 'node-for-api.sock'),
    nodeForEdge: join(runDir, 'node-for-edge.sock'),
    /** Owned by the api: what it serves is in there. */
    folder,
    api: join(folder, 'http.sock'),
    directory: join(folder, 'directory.sock'),
    /** Mount point of the api's own folders of the data directory, under the same names; only the api sees it. */
    data: join(folder, 'data'),
  };
}
