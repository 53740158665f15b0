import { expect, test } from 'bun:test';
import { onEachDatabase } from '../databases.ts';
import { call, until } from '../platform.ts';
import { randomOf } from '../random.ts';
import { Scene } from '../support/crash-scene.ts';

const seed = Number(process.env['ATOLL_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const crashes = 10;

/** What is requested, with names or numbers by which it is counted afterwards. */
const kinds = ['fork', 'snapshot', 'volume', 'build'] as const;
type Kind = (typeof kinds)[number];
type Asked = { key: string; kind: Kind; name: string; answer?: unknown };

onEachDatabase(database => {
  test(`kill -9 between effect and answer: asking again with the key does nothing twice (ATOLL_TEST_SEED=${seed})`, async () => {
    await using scene = await Scene.open(await database.location());
    const random = randomOf(seed);
    const all: Asked[] = [];
    let unknown = 0;
    for (let crash = 0; crash < crashes; crash++) {
      const child = await scene.start(Math.floor(random() * 2 ** 31));
      unknown += await askAgain(scene, child.key, all);
      const begun = all.length;
      const working = kinds.map(kind => work(scene, child.key, kind, all));
      const enough = begun + kinds.length + 2 + random() * 12;
      // However much faster some kinds are than others.
      const answered = (kind: Kind) =>
        all.slice(begun).some(asked => asked.kind === kind && asked.answer !== undefined);
      await until(() => all.length >= enough && kinds.every(answered), 60_000);
      await Bun.sleep(random() * 12);
      await child.kill();
      await Promise.all(working);
    }
    const child = await scene.start(1);
    unknown += await askAgain(scene, child.key, all);
    for (const kind of kinds) {
      const ofKind = all.filter(asked => asked.kind === kind);
      for (const asked of ofKind) {
        const made = await madeOf(scene, child.key, asked);
        // Once if it was answered; if that is unknown, once or not at all.
        expect({ ...asked, made }).toEqual({ ...asked, made: asked.answer === undefined && made === 0 ? 0 : 1 });
      }
      expect(ofKind.filter(({ answer }) => answer !== undefined).length).toBeGreaterThan(crashes / 2);
    }
    // Some were caught in the middle.
    expect(unknown).toBeGreaterThan(0);
    await child.kill();
  });
});

const asTeam = (key: string, more = {}) => ({ 'x-api-key': key, ...more });

/** Makes one thing after another until the platform dies. */
async function work(scene: Scene, key: string, kind: Kind, all: Asked[]): Promise<void> {
  for (;;) {
    const asked: Asked = { key: `key-${all.length}`, kind, name: `${kind}-${all.length}` };
    all.push(asked);
    const answer = await ask(scene, key, asked).catch(() => undefined);
    if (answer === undefined) return;
    expect({ kind, ...answer }).toMatchObject({ kind, status: kind === 'build' ? 202 : 201 });
    asked.answer = answer.body;
  }
}

/** A sandbox to fork, identified by its metadata, which its forks inherit; it is also made once. */
async function source(scene: Scene, key: string, name: string): Promise<string> {
  const body = { templateID: 'base', timeout: 3600, metadata: { name } };
  const headers = asTeam(key, { 'idempotency-key': `source-${name}` });
  const { body: made } = await call(scene.socketPath, 'POST', '/v2/sandboxes', body, headers);
  return (made as { sandboxID: string }).sandboxID;
}

async function ask(scene: Scene, key: string, { kind, name, key: own }: Asked) {
  const post = (path: string, body: object) =>
    call(scene.socketPath, 'POST', path, body, asTeam(key, { 'idempotency-key': own }));
  if (kind === 'volume') return post('/volumes', { name });
  if (kind === 'build') return post('/v3/templates', { name });
  const sandboxId = await source(scene, key, name);
  if (kind === 'fork') return post(`/sandboxes/${sandboxId}/fork`, { timeout: 3600 });
  return post(`/sandboxes/${sandboxId}/snapshots`, {});
}

/**
 * Repeats everything that was begun: what was answered gets the same answer. Answers how many had an unknown outcome.
 */
async function askAgain(scene: Scene, key: string, all: Asked[]): Promise<number> {
  let unknown = 0;
  for (const asked of all.filter(({ answer }, index) => answer === undefined || index > all.length - 6)) {
    const { status, body } = await ask(scene, key, asked);
    if (asked.answer !== undefined) expect(body).toEqual(asked.answer);
    else if (status < 300) asked.answer = body;
    else {
      expect({ asked, status, body }).toMatchObject({
        status: 409,
        body: { error_code: 'idempotency_outcome_unknown' },
      });
      unknown++;
    }
  }
  return unknown;
}

/** How many exist of what was requested. */
async function madeOf(scene: Scene, key: string, { kind, name }: Asked): Promise<number> {
  const list = async (path: string) =>
    (await call(scene.socketPath, 'GET', path, undefined, asTeam(key))).body as Record<string, unknown>[];
  if (kind === 'volume') return (await list('/volumes')).filter(volume => volume['name'] === name).length;
  if (kind === 'build') {
    const of = (await list('/templates')).find(({ aliases }) => (aliases as string[]).includes(name));
    return of ? Number(of['buildCount']) : 0;
  }
  const sandboxes = await list(`/v2/sandboxes?metadata=${encodeURIComponent(`name=${name}`)}`);
  // The source is one of them.
  if (kind === 'fork') return sandboxes.length - 1;
  return (await list(`/snapshots?sandboxID=${String(sandboxes[0]?.['sandboxID'])}`)).length;
}
