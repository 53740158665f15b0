import { afterEach, beforeEach, expect, jest, spyOn, test } from 'bun:test';
import { Connections } from '../../../api/connections.ts';
import { endFlag, joinEnvelope } from '../../../api/envelope.ts';
import { keepShell, keepShellStart, keptShell } from './shell-memory.ts';
import { openShell, type ShellChoice } from './shell-session.ts';

const target = { sandboxId: 'i1', token: null };
const place = { sandboxId: 'i1', number: 1 };
const kept = new Map<string, string>();

beforeEach(() => {
  jest.useFakeTimers();
  Object.assign(globalThis, {
    sessionStorage: {
      getItem: (key: string) => kept.get(key) ?? null,
      setItem: (key: string, value: string) => void kept.set(key, value),
      removeItem: (key: string) => void kept.delete(key),
    },
    requestAnimationFrame: (frame: () => void) => queueMicrotask(frame),
  });
});
afterEach(() => {
  jest.useRealTimers();
  kept.clear();
  for (const name of ['sessionStorage', 'requestAnimationFrame']) Reflect.deleteProperty(globalThis, name);
  (fetch as unknown as { mockRestore?(): void }).mockRestore?.();
});

type Message = { process?: { tag?: string; pid?: number; cmd?: string; cwd?: string }; tag?: string } & Record<
  string,
  unknown
>;
type Opened = { method: string; user: string; message: Message; signal: AbortSignal };

/** The bytes of requests and answers take several turns of the loop; this waits for no clock. */
const settle = async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise(resolve => queueMicrotask(() => resolve(undefined)));
  await new Promise(setImmediate);
};

const text = (init: RequestInit): string =>
  typeof init.body === 'string' ? init.body : new TextDecoder().decode((init.body as Uint8Array).subarray(5));

function endOf(error: object): Uint8Array<ArrayBuffer> {
  const last = joinEnvelope(JSON.stringify({ error }));
  last[0] = endFlag;
  return last;
}

/** An agent whose streams the test writes. */
function agent() {
  const opened: Opened[] = [];
  const called: { method: string; message: Message }[] = [];
  let writer: ReadableStreamDefaultController<Uint8Array> | undefined;
  let refused: Response | undefined;
  let isDeaf = false;
  let held: Promise<void> | undefined;
  spyOn(globalThis, 'fetch').mockImplementation((async (path: string, init: RequestInit) => {
    const method = path.replace('/process.Process/', '');
    const message = JSON.parse(text(init)) as Message;
    if (!init.signal) {
      called.push({ method, message });
      await held;
      return isDeaf ? Response.json({ message: 'deaf' }, { status: 503 }) : Response.json({});
    }
    const user = atob((init.headers as Record<string, string>)['Authorization']?.replace('Basic ', '') ?? '');
    const signal = init.signal;
    opened.push({ method, user, message, signal });
    const answer = refused;
    refused = undefined;
    if (answer) return answer;
    return new Response(
      new ReadableStream({
        start(controller) {
          writer = controller;
          signal.addEventListener('abort', () => controller.error(new DOMException('over', 'AbortError')));
        },
      }),
    );
  }) as typeof fetch);
  return {
    opened,
    called,
    deaf: () => (isDeaf = true),
    /** From now on, requests stay unanswered until the returned function is called. */
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      held = promise;
      return resolve;
    },
    /** What the next stream says, and nothing else. */
    refuse: (code: string) => (refused = new Response(endOf({ code, message: `it is ${code}` }))),
    async says(...events: object[]) {
      for (const event of events) writer?.enqueue(joinEnvelope(JSON.stringify({ event })));
      await settle();
    },
    async fails(error: object) {
      writer?.enqueue(endOf(error));
      await settle();
    },
    async breaksOff() {
      writer?.close();
      await settle();
    },
    typed: () =>
      called
        .filter(({ method }) => method === 'SendInput')
        .map(({ message }) => atob((message['input'] as { pty: string }).pty)),
  };
}

/** A shell on display, and everything that its view heard. */
function open(choice: ShellChoice, connections = new Connections(4), isShown = () => true) {
  const states: string[] = [];
  const whys: (string | undefined)[] = [];
  const shown: string[] = [];
  let replays = 0;
  const shell = openShell(target, choice, {
    size: () => ({ cols: 80, rows: 24 }),
    isShown,
    connections,
    onOutput: async bytes => void shown.push(new TextDecoder().decode(bytes)),
    onMuch: () => {},
    onReplay: () => replays++,
    onState(state, why) {
      states.push(state);
      whys.push(why);
    },
  });
  return { shell, states, whys, shown: () => shown.join(''), replays: () => replays };
}

const out = (output: string) => ({ data: { pty: btoa(output) } });

test('a shell begins as it was to, is typed into in order, has the size of its view, and ends', async () => {
  const { opened, called, says, typed } = agent();
  keepShellStart(place, { user: 'root', cwd: '/srv' });
  const { shell, states, whys, shown, replays } = open({ number: 1 });
  await settle();
  expect(opened).toMatchObject([
    { method: 'Start', user: 'root:', message: { pty: { size: { cols: 80, rows: 24 } } } },
  ]);
  expect(opened[0]?.message.process).toMatchObject({ cmd: '/bin/bash', args: ['-i', '-l'], cwd: '/srv' });
  shell.type('ec');
  shell.type('ho');
  shell.resize({ cols: 1, rows: 1 });
  await settle();
  expect([called, shell.process(), keptShell(place)]).toEqual([[], null, null]);
  await says({ start: { pid: 7 } }, out('$ '));
  const tag = opened[0]?.message.tag as string;
  expect([states, whys, shell.process(), keptShell(place), shown(), replays()]).toEqual([
    ['open'],
    ['process 7'],
    7,
    tag,
    '$ ',
    0,
  ]);
  shell.type('\r');
  shell.resize({ cols: 100, rows: 30 });
  await settle();
  expect(typed()).toEqual(['echo', '\r']);
  const sizes = called.filter(({ method }) => method === 'Update').map(({ message }) => message);
  expect(sizes).toEqual([
    { process: { tag }, pty: { size: { cols: 80, rows: 24 } } },
    { process: { tag }, pty: { size: { cols: 100, rows: 30 } } },
  ]);
  await says({ end: { exitCode: 0, status: 'exit status 0' } });
  expect([states.at(-1), whys.at(-1), keptShell(place)]).toEqual(['ended', 'exit status 0', null]);
  shell.type('late');
  shell.resize({ cols: 1, rows: 1 });
  jest.advanceTimersByTime(10_000);
  await settle();
  expect([typed(), opened.length, called.length]).toEqual([['echo', '\r'], 1, 4]);
});

test('a shell that this window had is shown again, and what it had asked its terminal gets no answer', async () => {
  const { opened, says, typed } = agent();
  keepShell(place, 'kept');
  const { shell, states, replays, shown } = open({ number: 1 });
  await settle();
  expect(opened).toMatchObject([
    { method: 'Connect', user: 'user:', message: { process: { tag: 'kept' }, replay: true } },
  ]);
  const report = '\u001b[?1;2c';
  await says({ start: { pid: 7, replayed: 4 } });
  shell.type(report);
  await says(out('old '));
  shell.type('x');
  shell.type(report);
  await settle();
  expect([states, replays(), shown(), typed().join('')]).toEqual([['open'], 1, 'old ', `x${report}`]);
});

test('a connection that breaks off is made again a moment later, with what was typed meanwhile', async () => {
  const { opened, says, breaksOff, typed } = agent();
  const { shell, states, whys } = open({ number: 1 });
  await settle();
  await says({ start: { pid: 7 } });
  await breaksOff();
  expect([states.at(-1), whys.at(-1)]).toEqual(['lost', 'The connection to the sandbox was lost']);
  shell.type('x'.repeat(65_530));
  shell.type('too much');
  shell.type('y');
  jest.advanceTimersByTime(1_499);
  await settle();
  expect([opened.length, typed()]).toEqual([1, []]);
  jest.advanceTimersByTime(1);
  await settle();
  expect(opened[1]).toMatchObject({ method: 'Connect', message: { process: { tag: opened[0]?.message.tag } } });
  await says({ start: { pid: 7, replayed: 0 } });
  expect([states, typed()]).toEqual([['open', 'lost', 'open'], [`${'x'.repeat(65_530)}y`]]);
});

test.each(['invalid_argument', 'not_found', 'permission_denied', 'unauthenticated', 'failed_precondition'])(
  'a shell that can not begin (%s) is not asked for again',
  async code => {
    const { opened, refuse } = agent();
    refuse(code);
    const { shell, states, whys } = open({ number: 1 });
    await settle();
    shell.type('x');
    jest.advanceTimersByTime(5_000);
    await settle();
    expect([states, whys, opened.length]).toEqual([['refused'], [`it is ${code}`], 1]);
  },
);

test('what may pass is tried again', async () => {
  const { opened, refuse, says } = agent();
  refuse('unavailable');
  const { states } = open({ number: 1 });
  await settle();
  jest.advanceTimersByTime(1_500);
  await settle();
  await says({ start: { pid: 7 } });
  expect([states, opened.map(({ method }) => method)]).toEqual([
    ['lost', 'open'],
    ['Start', 'Start'],
  ]);
});

test('where the sandbox was started anew another shell begins, without what was typed', async () => {
  const { opened, says, breaksOff, refuse, typed } = agent();
  const { shell, states, whys } = open({ number: 1 });
  await settle();
  await says({ start: { pid: 7 } });
  await breaksOff();
  shell.type('rm -rf x\r');
  refuse('not_found');
  jest.advanceTimersByTime(1_500);
  await settle();
  expect([states.at(-1), whys.at(-1), keptShell(place)]).toEqual([
    'lost',
    'The shell is not there any more: another one begins',
    null,
  ]);
  jest.advanceTimersByTime(1_500);
  await settle();
  await says({ start: { pid: 9 } });
  expect(opened.map(({ method }) => method)).toEqual(['Start', 'Connect', 'Start']);
  expect(opened[2]?.message.tag).not.toBe(opened[0]?.message.tag as string);
  expect([typed(), shell.process()]).toEqual([[], 9]);
});

test('keys that do not arrive are told of, and the next ones are sent', async () => {
  const { says, deaf, typed } = agent();
  const { shell, states, whys } = open({ number: 1 });
  await settle();
  await says({ start: { pid: 7 } });
  deaf();
  shell.type('a');
  await settle();
  shell.type('b');
  await settle();
  expect([states.at(-1), whys.at(-1), typed()]).toEqual(['open', 'What was typed has not arrived: deaf', ['a', 'b']]);
});

test('what is typed while a key is on its way follows it, as one message', async () => {
  const { says, hold, typed } = agent();
  const { shell } = open({ number: 1 });
  await settle();
  await says({ start: { pid: 7 } });
  const release = hold();
  for (const key of 'abc') {
    shell.type(key);
    await settle();
  }
  expect(typed()).toEqual(['a']);
  release();
  await settle();
  expect(typed()).toEqual(['a', 'bc']);
});

test('a process that is looked at gets nothing from here, and is shown as a terminal shows it', async () => {
  const { opened, called, says, refuse, breaksOff } = agent();
  const { shell, states, whys, shown } = open({ watched: 42 });
  expect(shell.process()).toBe(42);
  await settle();
  expect(opened).toMatchObject([{ method: 'Connect', message: { process: { pid: 42 }, replay: true } }]);
  await says({ start: { pid: 42 } }, { data: { stdout: btoa('a\nb') } }, { data: { stderr: btoa('c\n') } });
  shell.type('x');
  shell.resize({ cols: 1, rows: 1 });
  await shell.end().then(settle);
  expect([shown(), called, kept.size]).toEqual(['a\r\nbc\r\n', [], 0]);

  const second = open({ watched: 42 });
  await settle();
  await breaksOff();
  refuse('not_found');
  jest.advanceTimersByTime(1_500);
  await settle();
  expect([states, whys]).toEqual([['open'], ['process 42']]);
  expect([second.states, second.whys.at(-1)]).toEqual([['lost', 'ended'], 'This process is not there any more']);
});

test('a shell that is left runs on, and one that is ended is killed and forgotten', async () => {
  const { opened, called, says, fails } = agent();
  const first = open({ number: 1 });
  await settle();
  await says({ start: { pid: 7 } });
  const tag = opened[0]?.message.tag as string;
  first.shell.leave();
  await settle();
  expect([opened[0]?.signal.aborted, keptShell(place), first.states]).toEqual([true, tag, ['open']]);

  const second = open({ number: 1 });
  await settle();
  await fails({ code: 'unavailable', message: 'later' });
  expect([second.states, second.whys]).toEqual([['lost'], ['later']]);
  await second.shell.end();
  jest.advanceTimersByTime(5_000);
  await settle();
  expect(called.at(-1)).toEqual({ method: 'SendSignal', message: { process: { tag }, signal: 'SIGNAL_SIGKILL' } });
  expect([keptShell(place), opened.length]).toEqual([null, 2]);

  const third = open({ number: 1 });
  await third.shell.end();
  expect(called.filter(({ method }) => method === 'SendSignal')).toHaveLength(1);
});

test('a shell that nobody looks at gives its connection to one that is shown, and has it again later', async () => {
  const { opened, says } = agent();
  const connections = new Connections(1);
  let isFirstShown = true;
  const first = open({ number: 1 }, connections, () => isFirstShown);
  await settle();
  await says({ start: { pid: 7 } });
  isFirstShown = false;
  const second = open({ number: 2 }, connections, () => !isFirstShown);
  await settle();
  expect([first.states, second.states]).toEqual([['open', 'waiting'], []]);
  await says({ start: { pid: 8 } });
  expect([second.states.at(-1), opened.map(({ signal }) => signal.aborted)]).toEqual(['open', [true, false]]);
  isFirstShown = true;
  connections.look();
  jest.advanceTimersByTime(1_500);
  await settle();
  await says({ start: { pid: 7, replayed: 0 } });
  expect([first.states.at(-1), second.states.at(-1), opened[2]?.method]).toEqual(['open', 'waiting', 'Connect']);
});

test('a shell that has ended leaves its connection to one that waits', async () => {
  const { opened, says } = agent();
  const connections = new Connections(1);
  const [first, second] = [open({ number: 1 }, connections), open({ number: 2 }, connections)];
  await settle();
  expect([second.states, opened.length]).toEqual([['waiting'], 1]);
  await says({ start: { pid: 7 } }, { end: { exitCode: 0, status: '' } });
  await says({ start: { pid: 8 } });
  expect([first.states.at(-1), second.states.at(-1)]).toEqual(['ended', 'open']);
});
