import { afterAll, expect, test } from 'bun:test';
import { AtollError } from '../../../src/base/error.ts';
import { SingleFlight } from '../../../src/base/concurrency/single-flight.ts';
import { agentUnresponsive } from '../../../src/api/sandbox/rules/agent.ts';
import type { Resuming } from '../../../src/api/sandbox/rules/resuming.ts';
import { connectSandbox } from '../../../src/api/sandbox/workflows/connect.ts';
import { resumeTeamsSandbox } from '../../../src/api/sandbox/workflows/resume/resume.ts';
import { wakeSandbox } from '../../../src/api/sandbox/workflows/wake.ts';
import type { SandboxState } from '../../../src/protocol/state.ts';
import { volumeChanged } from '../../../src/protocol/volume.ts';
import { Platform } from '../platform.ts';

type Resumed = Awaited<ReturnType<Resuming['run']>>;

/** One platform for all: each test has its own sandbox. */
const platform = await Platform.start();
afterAll(() => platform[Symbol.asyncDispose]());

const { db } = platform.store;

/** A sandbox that is paused, and what can be asked of it. */
async function paused() {
  const { sandboxID } = await platform.createSandbox();
  expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`, {})).status).toBe(204);
  const setState = async (state: SandboxState) =>
    void (await db.updateTable('sandboxes').set({ state }).where('sandbox_id', '=', sandboxID).execute());
  const state = async () =>
    (await db.selectFrom('sandboxes').select('state').where('sandbox_id', '=', sandboxID).executeTakeFirstOrThrow())
      .state;
  const ask = (route: 'resume' | 'connect', timeout = 60) =>
    platform.call('POST', `/sandboxes/${sandboxID}/${route}`, { timeout });
  return { sandboxID, setState, state, ask };
}

/** The machine's answer to the next resume; without an error, it does what it is asked. */
function machineSays(error?: Error): void {
  platform.node.before = async call => {
    if (call === 'resume' && error) throw error;
  };
}

const failures: [string, Error, object][] = [
  [
    'has no room',
    new AtollError('unavailable', 'full', { detail: 'sandbox_capacity_unavailable' }),
    { status: 503, body: { message: expect.stringContaining('There is no room to resume sandbox') } },
  ],
  [
    'has no room on its disk',
    new AtollError('no_space', 'the disk is full'),
    {
      status: 503,
      body: {
        message: expect.stringMatching(/There is no room to resume .* now; it stays paused/),
        error_code: 'sandbox_capacity_unavailable',
      },
    },
  ],
  [
    'can’t put the memory back',
    new AtollError('unavailable', 'a timer is unknown', { detail: 'checkpoint_failed' }),
    {
      status: 500,
      body: {
        message: expect.stringMatching(/stays paused: a timer is unknown\. With memory: false it starts from/),
        error_code: 'sandbox_resume_failed',
      },
    },
  ],
  [
    'finds a file of a volume changed by others',
    new AtollError('conflict', 'a file of a volume is gone', { detail: volumeChanged }),
    {
      status: 409,
      body: {
        message: expect.stringMatching(/stays paused: a file of a volume is gone\. With memory: false it starts from/),
        error_code: 'sandbox_volume_changed',
      },
    },
  ],
  [
    'finds that what was kept is damaged',
    new AtollError('internal', 'wrong digest', { detail: 'sandbox_state_damaged' }),
    {
      status: 500,
      body: {
        message: expect.stringMatching(/stays paused\. What was kept of it is damaged$/),
        error_code: 'sandbox_state_damaged',
      },
    },
  ],
  [
    'no longer knows what was kept',
    new AtollError('not_found', 'no such checkpoint'),
    {
      status: 500,
      body: {
        message: expect.stringMatching(/stays paused\. It could not be started again$/),
        error_code: 'sandbox_resume_failed',
      },
    },
  ],
  [
    'refuses for a reason of its own',
    new AtollError('precondition', 'the driver is not there'),
    { status: 400, body: { message: 'the driver is not there' } },
  ],
  [
    'goes away',
    new AtollError('unavailable', 'the node ended', { detail: 'part_lost' }),
    { status: 503, body: { message: 'the node ended' } },
  ],
];

test.each(failures)(
  'where the machine %s, a sandbox stays paused, and its caller is told',
  async (_, error, answer) => {
    const { ask, state } = await paused();
    machineSays(error);
    expect(await ask('resume')).toMatchObject(answer);
    expect(await state()).toBe('paused');
    machineSays();
    expect((await ask('resume')).status).toBe(201);
  },
);

test('a visitor who would wake a sandbox whose volume was changed learns nothing of its files', async () => {
  const { sandboxID } = await platform.createSandbox({ autoPause: true, autoResume: { enabled: true } });
  expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`, {})).status).toBe(204);
  machineSays(new AtollError('conflict', 'data/log is gone', { detail: volumeChanged }));
  await expect(wakeSandbox(platform.api.parts, sandboxID)).rejects.toMatchObject({
    code: 'conflict',
    message: 'The sandbox is paused and can’t go on as it was: its owner has to resume it',
  });
  machineSays();
  expect((await wakeSandbox(platform.api.parts, sandboxID)).state).toBe('running');
});

/** A process's resumes in progress; calls `answer` when it is asked whether one is. */
class Watched extends SingleFlight<string, Resumed> {
  looks = 0;
  readonly #answer: (look: number) => Promise<Resumed> | undefined;

  constructor(answer: (look: number) => Promise<Resumed> | undefined) {
    super();
    this.#answer = answer;
  }

  override underWay(): Promise<Resumed> | undefined {
    return this.#answer(++this.looks);
  }
}

/** Makes a sandbox run in one of the possible ways, in a process of its own. */
function letRun(way: 'resume' | 'connect', sandboxId: string, resuming: Resuming) {
  const work = way === 'resume' ? resumeTeamsSandbox : connectSandbox;
  return work({ ...platform.api.parts, resuming }, platform.team, sandboxId, { seconds: 60, memory: true });
}

/** Runs `then` when a process first checks whether a resume is in progress, and answers that none is. */
const atFirstLook = (then: () => Promise<void>) =>
  new Watched(look => {
    if (look === 1) void then();
    return undefined;
  });

test.each(['resume', 'connect'] as const)('a %s while a sandbox is being paused waits for that', async way => {
  const { sandboxID, setState } = await paused();
  await setState('pausing');
  const { sandbox } = await letRun(
    way,
    sandboxID,
    atFirstLook(() => setState('paused')),
  );
  expect(sandbox.state).toBe('running');
});

test('where the pause comes to nothing, a connect finds it running and a resume is told so', async () => {
  const back = async (way: 'resume' | 'connect') => {
    const { sandboxID, setState } = await paused();
    await setState('pausing');
    return letRun(
      way,
      sandboxID,
      atFirstLook(() => setState('running')),
    );
  };
  await expect(back('resume')).rejects.toThrow('is running already');
  expect(await back('connect')).toMatchObject({ resumedFrom: null, sandbox: { state: 'running' } });
});

const changed = new AtollError('conflict', 'it changed again');
const neverAtRest: ['resume' | 'connect', string, (look: number) => Promise<never> | undefined, number][] = [
  ['resume', 'is changing its state: ask again', () => Promise.reject(changed), 3],
  ['connect', 'it changed again', () => Promise.reject(changed), 10],
  // A resume that ends between its two looks.
  ['connect', 'is changing its state: ask again', look => (look % 2 ? undefined : Promise.reject(changed)), 10],
];

test.each(neverAtRest)('a %s of what never comes to rest ends with "%s"', async (way, message, answer, looksMax) => {
  const { sandboxID, setState } = await paused();
  await setState('pausing');
  const resuming = new Watched(answer);
  await expect(letRun(way, sandboxID, resuming)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining(message),
  });
  expect(resuming.looks).toBeGreaterThan(1);
  expect(resuming.looks).toBeLessThanOrEqual(looksMax);
  await setState('paused');
});

test('who shares a resume by connect shares its failure, where that is not that it changed', async () => {
  const { sandboxID } = await paused();
  for (const error of [
    new AtollError('unavailable', 'there is no room'),
    new AtollError('conflict', 'its agent does not answer', { detail: agentUnresponsive }),
    new AtollError('conflict', 'a file of a volume is gone', { detail: volumeChanged }),
    new Error('the process is broken'),
  ]) {
    const resuming = new Watched(() => Promise.reject(error));
    await expect(letRun('connect', sandboxID, resuming)).rejects.toBe(error);
    expect(resuming.looks).toBe(1);
  }
});

test('who asks at the same time shares one resume by connect, and is told of it by the deprecated route', async () => {
  const { ask } = await paused();
  const [begun, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let resumes = 0;
  platform.node.before = async call => {
    if (call !== 'resume') return;
    resumes++;
    begun.resolve();
    await go.promise;
  };
  const first = ask('connect');
  await begun.promise;
  const second = ask('connect');
  expect((await ask('resume')).status).toBe(409);
  go.resolve();
  expect((await first).status).toBe(201);
  expect((await second).status).toBe(200);
  expect(resumes).toBe(1);
  machineSays();
});

test('a resume that has begun here and changed nothing yet is not shared by the deprecated route', async () => {
  const { sandboxID } = await paused();
  const resuming: Resuming = new SingleFlight();
  const other = Promise.withResolvers<Resumed>();
  void resuming.run(sandboxID, () => other.promise);
  await expect(letRun('resume', sandboxID, resuming)).rejects.toThrow('is changing its state: ask again');
  expect((await letRun('resume', sandboxID, new SingleFlight())).sandbox.state).toBe('running');
});

test('a time to live beyond the maximum of the team is refused before anything is looked for', async () => {
  for (const route of ['resume', 'connect'] as const) {
    const { ask, state } = await paused();
    expect(await ask(route, 10_000_000)).toMatchObject({
      status: 400,
      body: { message: expect.stringMatching(/^timeout/) },
    });
    expect(await state()).toBe('paused');
  }
});
