import type { SandboxNetworkConfig } from '../../../protocol/api/network.ts';
import { inTransaction } from '../../database/db.ts';
import type { Db } from '../../database/db.ts';
import { recordSandboxEvent } from './events.ts';
import { columnsOf, sandboxOfRow } from './row.ts';
import type { SandboxRecord } from '../record.ts';

/** The network settings that may change. */
export type NetworkSettings = { allowInternetAccess: boolean | null; network: SandboxNetworkConfig | null };

/**
 * Replaces the network settings of a running sandbox; with `only`, just if the present ones are still these. Null when
 * that is not so.
 */
export async function setSandboxNetwork(
  db: Db,
  execution: { sandboxId: string; executionId: string },
  settings: NetworkSettings,
  nowUs: number,
  only?: NetworkSettings,
): Promise<SandboxRecord | null> {
  return inTransaction(db, async db => {
    let query = db
      .updateTable('sandboxes')
      .set(columnsOf(networkOf(settings)))
      .where('sandbox_id', '=', execution.sandboxId)
      .where('execution_id', '=', execution.executionId)
      .where('state', '=', 'running');
    if (only) {
      const { network_json, allow_internet_access } = columnsOf(networkOf(only));
      query = query
        .where('network_json', network_json === null ? 'is' : '=', network_json)
        .where('allow_internet_access', allow_internet_access === null ? 'is' : '=', allow_internet_access);
    }
    const row = await query.returningAll().executeTakeFirst();
    if (!row) return null;
    const changed = sandboxOfRow(row);
    // Rules may hold credentials, so the event only says that they changed.
    await recordSandboxEvent(db, changed, { type: 'updated', atUs: nowUs, data: { set_network: true } });
    return changed;
  });
}

/** The network settings among the members of a record. */
const networkOf = ({ allowInternetAccess, network }: NetworkSettings): NetworkSettings => ({
  allowInternetAccess,
  network,
});
