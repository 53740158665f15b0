import { expect, test } from 'bun:test';
import { openStore } from '../../database/database.ts';
import type { Nodes } from '../../placement/nodes.ts';
import type { Measures } from '../measures.ts';
import { operatorMetrics } from './operator.ts';

const silent = () => new Promise<never>(() => {});

test('a machine that is out of reach or stands still is reported as down, and delays nobody', async () => {
  await using store = await openStore({ kind: 'sqlite', path: ':memory:' });
  const away = (nodeId: string, isConnecting: boolean) => ({ nodeId, isConnecting, sinceUs: 0, info: null });
  const nodes = {
    list: () => [{ nodeId: 'still', protocol: { info: silent, usage: silent } }],
    away: () => [away('cut', false), away('coming', true)],
  } as unknown as Nodes;
  const measures = { metrics: () => [] } as unknown as Measures;
  const deps = { commit: 'c', db: store.db, metrics: () => [], measures, nodes };
  const text = await operatorMetrics({ ...deps, store: { isUsable: false } }, 10);
  expect(text.split('\n').filter(line => line.startsWith('atoll_node_up'))).toEqual([
    'atoll_node_up{node="still"} 0',
    'atoll_node_up{node="cut"} 0',
  ]);
  expect(text).toContain('\natoll_store_up 0\n');
  expect(await operatorMetrics({ ...deps, store: null }, 10)).not.toMatch(/^atoll_store_up /m);
});
