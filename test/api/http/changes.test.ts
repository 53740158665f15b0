import { expect, test } from 'bun:test';
import { followChanges } from '../../../src/api/sandbox/reconcilers/changes.ts';
import { Platform, until } from '../platform.ts';

test('a row that was read while a workflow of the same process was at work does not undo what that has said since', async () => {
  await using platform = await Platform.start();
  const { sandboxID: id } = await platform.createSandbox();
  const { busy, directory, log } = platform.api.parts;
  const { db } = platform.store;
  const { executionId } = directory.find(id) ?? { executionId: '' };
  const setState = (state: 'pausing' | 'running') =>
    db.updateTable('sandboxes').set({ state }).where('sandbox_id', '=', id).execute();

  // The first answer of the database is in transit as long as the workflow runs.
  const [asked, arrives] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = db.withPlugin({
    transformQuery: ({ node }) => node,
    async transformResult({ result }) {
      asked.resolve();
      await arrives.promise;
      return result;
    },
  });
  let tell: (changed: ReadonlySet<string> | null) => void = () => {};
  const stop = followChanges(
    { busy, db: slow, directory, log },
    { onSandboxChanges: listener => ((tell = listener), () => {}) },
  );
  await busy.while(executionId, async () => {
    await setState('pausing');
    tell(new Set([id]));
    await asked.promise;
    await setState('running');
  });
  arrives.resolve();
  await stop();
  expect(directory.find(id)).toMatchObject({ state: 'running' });
});

test('what could not be read is read again', async () => {
  for (const isAny of [false, true]) {
    await using platform = await Platform.start();
    const { sandboxID: id } = await platform.createSandbox();
    const { busy, directory, log } = platform.api.parts;
    const { db } = platform.store;
    let failures = 1;
    const failing = db.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        if (failures-- > 0) throw new Error('the database is away');
        return result;
      },
    });
    let tell: (changed: ReadonlySet<string> | null) => void = () => {};
    const stop = followChanges(
      { busy, db: failing, directory, log },
      { onSandboxChanges: listener => ((tell = listener), () => {}) },
    );
    await db.updateTable('sandboxes').set({ state: 'paused', kept: 'memory' }).where('sandbox_id', '=', id).execute();
    tell(isAny ? null : new Set([id]));
    await until(() => directory.find(id)?.state === 'paused');
    await stop();
  }
});
