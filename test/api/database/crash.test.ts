import { expect, test } from 'bun:test';
import { onEachDatabase } from '../databases.ts';
import { call, until } from '../platform.ts';
import { randomOf } from '../random.ts';
import { type Known, Scene } from '../support/crash-scene.ts';

const seed = Number(process.env['ATOLL_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const crashes = 12;
const clients = 4;

onEachDatabase(database => {
  test(`kill -9 at any moment loses nothing that was answered (ATOLL_TEST_SEED=${seed})`, async () => {
    await using scene = await Scene.open(await database.location());
    const random = randomOf(seed);
    const known = new Map<string, Known>();
    const creates: Creates = { next: 0, unanswered: new Set(), answered: new Map() };
    let answered = 0;
    for (let crash = 0; crash < crashes; crash++) {
      const child = await scene.start(Math.floor(random() * 2 ** 31));
      await scene.check(child.key, known);
      await repeat(scene, child.key, known, creates);
      const working = Array.from({ length: clients }, () =>
        work(scene, child.key, { known, creates, random, onAnswer: () => answered++ }),
      );
      // Counted by work done as well as by time: a busy machine gets as far as an idle one before each crash.
      const enough = answered + 4 + random() * 16;
      await until(() => answered >= enough, 60_000);
      await Bun.sleep(random() * 20);
      await child.kill();
      await Promise.all(working);
    }
    const child = await scene.start(1);
    await scene.check(child.key, known);
    await repeat(scene, child.key, known, creates);
    // After repeating what was not answered, the client knows every existing sandbox.
    const listed = await scene.check(child.key, known);
    expect([...listed].filter(sandboxId => !known.has(sandboxId))).toEqual([]);
    await child.kill();
    const counts = (state: Known) => [...known.values()].filter(value => value === state).length;
    expect(answered).toBeGreaterThan(crashes * 5);
    expect(counts('alive')).toBeGreaterThan(5);
    expect(counts('killed')).toBeGreaterThan(5);
  });

  test(`kill -9 while it starts for the first time leaves a database that starts (ATOLL_TEST_SEED=${seed})`, async () => {
    await using scene = await Scene.open(await database.location());
    const random = randomOf(seed);
    for (let crash = 0; crash < 8; crash++) {
      const process = scene.spawn(1);
      await Bun.sleep(random() * 250);
      process.kill('SIGKILL');
      await process.exited;
    }
    const child = await scene.start(1);
    expect(
      (await call(scene.socketPath, 'POST', '/v2/sandboxes', { templateID: 'base' }, { 'x-api-key': child.key }))
        .status,
    ).toBe(201);
    await child.kill();
  });
});

/** Creates by their keys: those whose answers were lost, and the answers of the others. */
type Creates = { next: number; unanswered: Set<string>; answered: Map<string, string> };

const create = (scene: Scene, key: string, repeatable: string) =>
  call(
    scene.socketPath,
    'POST',
    '/v2/sandboxes',
    { templateID: 'base', timeout: 3600 },
    { 'x-api-key': key, 'idempotency-key': repeatable },
  );

/** Repeats each create whose answer was lost, and some that were answered. */
async function repeat(scene: Scene, key: string, known: Map<string, Known>, creates: Creates): Promise<void> {
  for (const name of creates.unanswered) {
    const { status, body } = await create(scene, key, name);
    expect(status).toBe(201);
    const { sandboxID } = body as { sandboxID: string };
    expect(known.has(sandboxID)).toBe(false);
    known.set(sandboxID, 'alive');
    creates.answered.set(name, sandboxID);
  }
  creates.unanswered.clear();
  for (const [name, sandboxID] of [...creates.answered].slice(-3))
    expect((await create(scene, key, name)).body).toMatchObject({ sandboxID });
}

/** One client: creates and kills until the platform dies. */
async function work(
  scene: Scene,
  key: string,
  its: { known: Map<string, Known>; creates: Creates; random: () => number; onAnswer: () => void },
): Promise<void> {
  const { known, creates, random, onAnswer } = its;
  for (;;) {
    const victim = random() < 0.35 ? [...known].find(([, state]) => state === 'alive')?.[0] : undefined;
    const name = `create-${creates.next++}`;
    if (victim !== undefined) known.set(victim, 'kill was asked');
    else creates.unanswered.add(name);
    try {
      const answer = victim
        ? await call(scene.socketPath, 'DELETE', `/sandboxes/${victim}`, undefined, { 'x-api-key': key })
        : await create(scene, key, name);
      onAnswer();
      if (victim !== undefined && answer.status === 204) known.set(victim, 'killed');
      else if (victim === undefined && answer.status === 201) {
        const { sandboxID } = answer.body as { sandboxID: string };
        known.set(sandboxID, 'alive');
        creates.answered.set(name, sandboxID);
        creates.unanswered.delete(name);
      } else throw new Error(`${victim ? 'kill' : 'create'} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    } catch (error) {
      if (error instanceof Error && error.message.includes('answered')) throw error;
      return;
    }
  }
}
