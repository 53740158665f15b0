import { type Cluster, controlOf } from './cluster.ts';

/** A volume as in the API's answers. */
export type Volume = { volumeID: string; name: string; token: string; copiedAt?: string };

/** Makes a volume on one machine: the others are taken out meanwhile. */
export async function volumeOn(cluster: Cluster, node: { nodeId: string }, name: string): Promise<Volume> {
  const others = cluster.nodes.filter(({ nodeId }) => nodeId !== node.nodeId);
  const set = (status: string) =>
    Promise.all(others.map(({ nodeId }) => cluster.admin(0, 'POST', `/nodes/${nodeId}`, { status })));
  await set('standby');
  const answer = await controlOf(cluster, 0).call('POST', '/volumes', { name });
  await set('ready');
  if (answer.status !== 201) throw new Error(`the volume ${name} was not made: ${await answer.text()}`);
  return (await answer.json()) as Volume;
}

/** The machine that a volume is on, according to the database. */
export async function homeOfVolume(cluster: Cluster, { volumeID }: Volume): Promise<string | undefined> {
  const [row] = await cluster.query<{ node_id: string }>(`select node_id from volumes where volume_id = '${volumeID}'`);
  return row?.node_id;
}

/** A request for the content of a volume, through any control process. */
export function content(
  cluster: Cluster,
  { volumeID, token }: Volume,
  method: string,
  path: string,
  options: { control?: number; body?: Uint8Array } = {},
) {
  const { control = 0, body } = options;
  return fetch(`${controlOf(cluster, control).url}/volumecontent/${volumeID}/${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}` },
    ...(body && { body: body as Uint8Array<ArrayBuffer> }),
  });
}
