import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ChildOptions } from '../crash-child.ts';
import { bundleCrashChild } from '../crash-program.ts';
import { onEachDatabase } from '../databases.ts';
import { FakeNode } from '../fake-node.ts';
import { call, until } from '../platform.ts';
import { randomOf } from '../random.ts';

const seed = Number(process.env['ATOLL_TEST_SEED'] ?? Math.floor(Math.random() * 2 ** 31));
const crashes = 12;
const clients = 4;

/** What the clients know of a sandbox whose create was answered. */
type Known = 'alive' | 'killed' | 'kill was asked';

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
      // By work done and not by time alone: a busy machine gets as far as an idle one before each crash.
      const enough = answered + 4 + random() * 16;
      await until(() => answered >= enough, 60_000);
      await Bun.sleep(random() * 20);
      await child.kill();
      await Promise.all(working);
    }
    const child = await scene.start(1);
    await scene.check(child.key, known);
    await repeat(scene, child.key, known, creates);
    // Whoever asks again for what was not answered knows of every sandbox that there is.
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

/** Creates by their keys: those whose answers were lost, and what the others were answered. */
type Creates = { next: number; unanswered: Set<string>; answered: Map<string, string> };

const create = (scene: Scene, key: string, repeatable: string) =>
  call(
    scene.socketPath,
    'POST',
    '/v2/sandboxes',
    { templateID: 'base', timeout: 3600 },
    { 'x-api-key': key, 'idempotency-key': repeatable },
  );

/** Asks again for each create whose answer was lost, and for some that were answered. */
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

/** One client: creates and kills until the platform dies under it. */
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

class Scene implements AsyncDisposable {
  readonly #directory: string;
  readonly #program: string;
  readonly #options: Omit<ChildOptions, 'seed'>;
  readonly #node: FakeNode;
  readonly #children: Bun.Subprocess[] = [];

  private constructor(directory: string, program: string, location: ChildOptions['location'] | undefined) {
    this.#directory = directory;
    this.#program = program;
    this.#options = {
      location: location ?? { kind: 'sqlite', path: join(this.#directory, 'atoll.db') },
      nodeDirectory: join(this.#directory, 'node'),
      socketPath: join(this.#directory, 'api.sock'),
    };
    this.#node = new FakeNode(this.#options.nodeDirectory);
  }

  static async open(location: ChildOptions['location'] | undefined): Promise<Scene> {
    const directory = mkdtempSync(join(tmpdir(), 'atoll-crash-'));
    return new Scene(directory, await bundleCrashChild(directory), location);
  }

  get socketPath(): string {
    return this.#options.socketPath;
  }

  spawn(childSeed: number) {
    const options: ChildOptions = { ...this.#options, seed: childSeed };
    const child = Bun.spawn([process.execPath, this.#program, JSON.stringify(options)], {
      stdout: 'pipe',
      stderr: 'inherit',
      stdin: 'ignore',
    });
    this.#children.push(child);
    return child;
  }

  /** Starts the platform and answers when it has adopted what the last one left. */
  async start(childSeed: number): Promise<{ key: string; kill(): Promise<void> }> {
    const child = this.spawn(childSeed);
    let text = '';
    for await (const chunk of child.stdout) {
      text += new TextDecoder().decode(chunk);
      const [, key] = /ready (\S+)\n/.exec(text) ?? [];
      if (key === undefined) continue;
      return {
        key,
        async kill() {
          child.kill('SIGKILL');
          await child.exited;
        },
      };
    }
    throw new Error(`the platform ended with ${await child.exited} before it was ready`);
  }

  /**
   * Compares what the API says with what the clients were told and with what is on the node. Answers what is listed.
   */
  async check(key: string, known: Map<string, Known>): Promise<Set<string>> {
    const listed = new Set<string>();
    for (let token: string | null = ''; token !== null;) {
      const page = await call(this.socketPath, 'GET', `/v2/sandboxes?${token && `nextToken=${token}`}`, undefined, {
        'x-api-key': key,
      });
      for (const { sandboxID } of page.body as Array<{ sandboxID: string }>) listed.add(sandboxID);
      token = page.headers.get('x-next-token');
    }
    const onNode = this.#node.executions().map(({ sandboxId }) => sandboxId);
    expect(onNode.toSorted()).toEqual([...listed].toSorted());
    for (const [sandboxId, state] of known) {
      if (state === 'alive') expect({ sandboxId, listed: listed.has(sandboxId) }).toEqual({ sandboxId, listed: true });
      if (state === 'killed')
        expect({ sandboxId, listed: listed.has(sandboxId) }).toEqual({ sandboxId, listed: false });
      if (state === 'kill was asked') known.set(sandboxId, listed.has(sandboxId) ? 'alive' : 'killed');
    }
    return listed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL');
    await Promise.all(this.#children.map(child => child.exited));
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
