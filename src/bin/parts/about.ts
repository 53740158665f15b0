import { join } from 'node:path';

/** What the node says when it serves. */
export type NodeAbout = { installation: number; runDir: string; helperPid: number };

/** What the api says when it serves. */
export type ApiAbout = { apiKey: string; building: string[] };

/** What the edge says when it serves. */
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
    /** Where the api alone sees what is its own of the data directory, under the same names. */
    data: join(folder, 'data'),
  };
}
