import { expect, test } from 'bun:test';
import { routes } from '../../../src/api/routes.ts';
import { authorizationRows } from '../authorization-rows.ts';
import { Scene } from '../authorization-scene.ts';
import type { Caller } from '../authorization-scene.ts';

type Entry = {
  operation: string;
  target: string;
  status: number;
  actor: { kind: string; id: string | null };
  before: unknown;
  after: unknown;
};

/** The callers tried for each operation, in this order, until one is admitted. */
const callers: Caller[] = [
  'right key',
  'access token with team',
  'access token',
  'admin',
  'metrics token',
  "volume's token",
  'session',
  "operator's session",
  'no key',
];

test('every operation that changes something writes who did it to what, once; none that only reads does', async () => {
  await using scene = await Scene.open();
  const entriesOf = async (operation: string) =>
    (await scene.send('admin', 'GET', `/admin/audit?operation=${operation}`)).body as Entry[];
  let changing = 0;
  for (const route of routes) {
    const row = authorizationRows[route.operationId];
    if (!row) throw new Error(`${route.operationId} has no row`);
    const before = (await entriesOf(route.operationId)).length;
    let answered: Caller | undefined;
    for (const caller of callers) {
      const request = await row.request(scene);
      const known = (await entriesOf(route.operationId)).length;
      const { status } = await scene.send(caller, route.method, request.path, request.body);
      const entries = await entriesOf(route.operationId);
      if (status !== row.success || row.success >= 400) {
        // Refused: nothing was changed, and nothing is recorded.
        if (status === row.success) answered = caller;
        expect({ operation: route.operationId, caller, entries: entries.length }).toEqual({
          operation: route.operationId,
          caller,
          entries: known,
        });
        continue;
      }
      answered = caller;
      if (!route.changes) {
        expect({ operation: route.operationId, entries: entries.length }).toEqual({
          operation: route.operationId,
          entries: before,
        });
        break;
      }
      changing++;
      expect({ operation: route.operationId, entries: entries.length }).toEqual({
        operation: route.operationId,
        entries: known + 1,
      });
      const kind =
        route.auth === 'none'
          ? 'none'
          : caller === 'right key'
            ? 'apiKey'
            : caller.startsWith('admin') || caller.startsWith('operator')
              ? 'admin'
              : 'user';
      expect({ operation: route.operationId, ...entries[0] }).toMatchObject({
        operation: route.operationId,
        status,
        actor: { kind },
      });
      expect({ operation: route.operationId, target: entries[0]?.target }).toEqual({
        operation: route.operationId,
        target: expect.stringMatching(/^\w+:.+/),
      });
      break;
    }
    expect({ operation: route.operationId, answered: answered !== undefined }).toEqual({
      operation: route.operationId,
      answered: true,
    });
    await scene.tidy();
  }
  expect(changing).toBeGreaterThan(40);
}, 120_000);
