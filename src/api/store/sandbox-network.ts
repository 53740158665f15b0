import type { SandboxNetworkConfig } from '../../protocol/api/network.ts';
import type { Db } from './database.ts';
import { networkColumns, sandboxOfRow } from './sandbox-row.ts';
import type { SandboxRecord } from './sandbox-row.ts';

export type NetworkSettings = { allowInternetAccess: boolean | null; network: SandboxNetworkConfig | null };

/** Replaces the network settings of a running sandbox. With `only`, just if they are still these. Null when it is not so. */
export async function setSandboxNetwork(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  settings: NetworkSettings,
  only?: NetworkSettings,
): Promise<SandboxRecord | null> {
  let query = db
    .updateTable('sandboxes')
    .set(networkColumns(settings))
    .where('sandbox_id', '=', execution.sandboxId)
    .where('execution_id', '=', execution.executionId)
    .where('state', '=', 'running');
  if (only) {
    const { network_json, allow_internet_access } = networkColumns(only);
    query = query
      .where('network_json', network_json === null ? 'is' : '=', network_json)
      .where('allow_internet_access', allow_internet_access === null ? 'is' : '=', allow_internet_access);
  }
  const row = await query.returningAll().executeTakeFirst();
  return row ? sandboxOfRow(row) : null;
}
