import { expect, test } from 'bun:test';
import type { Call } from '../connect/call.ts';
import type { Message } from '../connect/message.ts';
import { Outbox } from '../connect/outbox.ts';
import type { Ending, EndEvent } from './end-status.ts';
import { processMethods } from './methods.ts';
import { Process } from './process.ts';
import type { ProcessHost } from './process-host.ts';
import { ProcessTable } from './process-table.ts';
import type { Input } from './input.ts';
import type { OutputName, Program } from './program.ts';

type Options = {
  pid?: number;
  tag?: string;
  names?: OutputName[];
  /** The input it takes; null: none. */
  input?: Input['kind'] | null;
  /** How often the kernel has killed because memory ran out. */
  kills?: number;
  withLines?: boolean;
};

/** A program whose outputs and end the test controls. */
function programOf({
  pid = 7,
  tag,
  names = ['stdout', 'stderr'],
  input = 'stdin',
  kills = 0,
  withLines,
}: Options = {}) {
  const did: unknown[] = [];
  const ended = Promise.withResolvers<Ending>();
  const outputs = names.map(name => {
    const controller = Promise.withResolvers<ReadableStreamDefaultController<Uint8Array>>();
    const stream = new ReadableStream<Uint8Array>({ start: one => controller.resolve(one) });
    return { name, controller: controller.promise, reader: stream.getReader() };
  });
  const program = {
    ...{ pid, ended: ended.promise, outputs },
    input: input === null ? undefined : inputOf(input, did),
    signal: (number: number) => void did.push(['signal', number]),
    resize: (size: object) => names.includes('pty') && did.push(['resize', size]) > 0,
  } as unknown as Program;
  const lines = {
    take: (bytes: Uint8Array) => void did.push(['line', textOf(bytes)]),
    end: () => void did.push('lines'),
  };
  const process = new Process(program, { cmd: 'ls', args: [], envs: {} }, tag, {
    outOfMemory: { sawKill: () => kills-- > 0 },
    log: {
      linesOf: () => (withLines ? (lines as never) : undefined),
      signalled: number => void did.push(['logged signal', number]),
      ended: ({ error, status }) => void did.push(['logged end', error ?? status]),
    },
  });
  const at = (name: OutputName) => outputs.find(one => one.name === name)?.controller;
  return {
    ...{ process, did },
    print: async (name: OutputName, content: string | Uint8Array) => (await at(name))?.enqueue(Buffer.from(content)),
    closeOutputs: async () => {
      for (const { controller } of outputs) (await controller).close();
    },
    failOutputs: async () => {
      for (const { controller } of outputs) (await controller).error(new Error('EIO'));
    },
    exit: (ending: Ending) => ended.resolve(ending),
  };
}

const inputOf = (kind: Input['kind'], did: unknown[]): Input => ({
  kind,
  write: async bytes => void did.push(['write', textOf(bytes)]),
  close: async () => void did.push('close'),
});
const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString();

/** An attached client, and what it received when its stream is over. */
function client() {
  const outbox = new Outbox();
  const reader = outbox.stream();
  const events = async (): Promise<Record<string, Record<string, unknown>>[]> => {
    const bytes = Buffer.from(await new Response(reader).arrayBuffer());
    const found = [];
    for (let at = 0; at < bytes.length; at += 5 + bytes.readUInt32BE(at + 1))
      found.push(JSON.parse(bytes.toString('utf8', at + 5, at + 5 + bytes.readUInt32BE(at + 1))));
    return found.map(({ event, error }) => event ?? { closed: error ?? {} });
  };
  return { outbox, events };
}
const data = (name: string, content: string) => ({ data: { [name]: Buffer.from(content).toString('base64') } });
const settled = async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
};

test('an attached client gets the start, all output and the end, in this order', async () => {
  const { process, print, closeOutputs, exit, did } = programOf({ withLines: true });
  const { outbox, events } = client();
  process.attach(outbox);
  await print('stdout', 'out');
  await print('stderr', 'err');
  await settled();
  exit({ exitCode: 3 });
  await settled();
  expect(process.isAlive).toBeFalse();
  // It is over when its output is over, not before.
  await print('stdout', 'late');
  await closeOutputs();
  const end = { exitCode: 3, exited: true, status: 'exit status 3', error: 'exit status 3' };
  expect(await process.ended).toEqual(end as EndEvent);
  const outputs = [data('stdout', 'out'), data('stderr', 'err'), data('stdout', 'late')];
  expect(await events()).toEqual([{ start: { pid: 7 } }, ...outputs, { end }, { closed: {} }]);
  const lines = [['line', 'out'], ['line', 'err'], 'close', ['line', 'late'], 'lines', 'lines'];
  expect(did).toEqual([...lines, ['logged end', 'exit status 3']]);
});

test('output comes in pieces that every client can take', async () => {
  for (const [name, most] of [
    ['stdout', 32 << 10],
    ['pty', 16 << 10],
  ] as const) {
    const { process, print, closeOutputs, exit } = programOf({ names: [name] });
    const { outbox, events } = client();
    process.attach(outbox);
    await print(name, Buffer.alloc(most * 2 + 1, 'x'));
    await closeOutputs();
    exit({ exitCode: 0 });
    const pieces = (await events()).flatMap(({ data: piece }) => (piece ? [String(piece[name])] : []));
    expect(pieces.map(piece => Buffer.from(piece, 'base64').length)).toEqual([most, most, 1]);
  }
});

test('a program that nobody is attached to is read all the same, and a terminal shows what it has shown', async () => {
  const { process, print, exit, failOutputs } = programOf({ names: ['pty'], input: 'pty' });
  await print('pty', 'before');
  await settled();
  const [whole, fromNow] = [client(), client()];
  process.attach(whole.outbox, { replays: true });
  process.attach(fromNow.outbox);
  await print('pty', 'after');
  await settled();
  exit({ exitCode: 0 });
  // A terminal reports by an error that its last program has ended.
  await failOutputs();
  const rest = [data('pty', 'after'), { end: { exited: true, status: 'exit status 0' } }, { closed: {} }];
  expect(await whole.events()).toEqual([{ start: { pid: 7, replayed: 6 } }, data('pty', 'before'), ...rest]);
  expect(await fromNow.events()).toEqual([{ start: { pid: 7 } }, ...rest]);
});

test('an end for want of memory is told, but not to terminals, and not where a client has killed', async () => {
  const oom = ' (out of memory: the memory limit of the sandbox was reached)';
  for (const [options, ending, killed, error, logged] of [
    [{ kills: 1 }, { signal: 9 }, false, `signal: killed${oom}`, `signal: killed${oom}`],
    [{ kills: 1 }, { exitCode: 137 }, false, `exit status 137${oom}`, `exit status 137${oom}`],
    [{ kills: 1, names: ['pty'] }, { signal: 9 }, false, 'signal: killed', `signal: killed${oom}`],
    [{ kills: 1 }, { signal: 9 }, true, 'signal: killed', 'signal: killed'],
    [{ kills: 0 }, { signal: 9 }, false, 'signal: killed', 'signal: killed'],
    [{ kills: 1 }, { signal: 15 }, false, 'signal: terminated', 'signal: terminated'],
    [{ kills: 1 }, { exitCode: 1 }, false, 'exit status 1', 'exit status 1'],
  ] as [Options, Ending, boolean, string, string][]) {
    const { process, closeOutputs, exit, did } = programOf(options);
    if (killed) process.signal(9);
    exit(ending);
    await closeOutputs();
    expect((await process.ended).error).toBe(error);
    expect(did.at(-1)).toEqual(['logged end', logged]);
  }
});

test('output that a child keeps open is waited for, until a client has wanted the process gone', async () => {
  const { process, print, exit, did } = programOf();
  const { outbox, events } = client();
  process.attach(outbox);
  exit({ exitCode: 0 });
  await settled();
  await print('stdout', 'of the child');
  await settled();
  expect(outbox.isOpen).toBeTrue();
  process.signal(15);
  expect((await events()).slice(1)).toEqual([
    data('stdout', 'of the child'),
    { end: { exited: true, status: 'exit status 0' } },
    { closed: {} },
  ]);
  // Its PID may be another program's by then.
  expect(did).toEqual(['close', ['logged end', 'exit status 0']]);
});

test('a child that prints without an end keeps nobody waiting whose process was killed', async () => {
  const { process, print, exit } = programOf({ names: ['stdout'] });
  process.signal(9);
  exit({ signal: 9 });
  let isOver = false;
  void process.ended.then(() => (isOver = true));
  while (!isOver) {
    await print('stdout', Buffer.alloc(64 << 10));
    await settled();
  }
});

test('a process that is not done in time is killed, and one that is done is left alone', async () => {
  const late = programOf();
  const { promise: told, resolve } = Promise.withResolvers<void>();
  late.process.endWithin(1, resolve);
  await told;
  expect(late.did).toEqual([
    ['signal', 9],
    ['logged signal', 9],
  ]);
  const done = programOf();
  done.process.endWithin(5, () => done.did.push('killed'));
  done.exit({ exitCode: 0 });
  await done.closeOutputs();
  await done.process.ended;
  const later = Promise.withResolvers<void>();
  setTimeout(later.resolve, 20);
  await later.promise;
  expect(done.did).toEqual(['close', ['logged end', 'exit status 0']]);
});

/** The service with these processes, by method name. */
function service(...programs: ReturnType<typeof programOf>[]) {
  const processes = new ProcessTable();
  for (const { process } of programs) processes.add(process, () => {});
  const methods = new Map(processMethods({ processes } as unknown as ProcessHost));
  const methodOf = (name: string) => methods.get(`/process.Process/${name}`);
  return {
    async ask(name: string, message: object): Promise<unknown> {
      const method = methodOf(name);
      if (method?.kind !== 'unary') throw new Error(`${name} is none`);
      return method.answer(message as Message, {} as Call);
    },
    connect(message: object, call: Partial<Call> = {}) {
      const method = methodOf('Connect');
      if (method?.kind !== 'server-stream') throw new Error('Connect is none');
      const { outbox, events } = client();
      void method.open(message as Message, { keepaliveMs: 90_000, ...call } as Call, outbox);
      return { outbox, events };
    },
    async stream(...messages: object[]): Promise<unknown> {
      const method = methodOf('StreamInput');
      if (method?.kind !== 'client-stream') throw new Error('StreamInput is none');
      const all = async function* () {
        yield* messages;
      };
      return method.answer(all(), {} as Call);
    },
  };
}
const selected = { process: { pid: 7 } };
const base64 = (text: string) => Buffer.from(text).toString('base64');
const refused = (code: string, message: string) =>
  expect.objectContaining({ code, message: expect.stringContaining(message) }) as unknown;

test('the list has every process that runs, with its tag where it has one', async () => {
  const [one, two] = [programOf(), programOf({ pid: 8, tag: 'mine' })];
  const config = { cmd: 'ls', args: [], envs: {} };
  const { ask } = service(one, two);
  expect(await ask('List', {})).toEqual({
    processes: [
      { config, pid: 7 },
      { config, pid: 8, tag: 'mine' },
    ],
  });
  for (const { exit, closeOutputs } of [one, two]) {
    exit({ exitCode: 0 });
    await closeOutputs();
  }
  await settled();
  expect(await ask('List', {})).toEqual({});
});

test('input goes to a process that takes it so', async () => {
  const program = programOf();
  const { ask, stream } = service(program);
  expect(await ask('SendInput', { ...selected, input: { stdin: base64('a') } })).toEqual({});
  const start = { start: selected };
  expect(await stream(start, { data: { input: { stdin: base64('b') } } }, { keepalive: {} })).toEqual({});
  expect(program.did).toEqual([
    ['write', 'a'],
    ['write', 'b'],
  ]);
  const terminal = programOf({ names: ['pty'], input: 'pty' });
  await service(terminal).ask('SendInput', { ...selected, input: { pty: base64('c') } });
  expect(terminal.did).toEqual([['write', 'c']]);
  await expect(stream({ data: { input: { stdin: base64('b') } } }, start)).rejects.toEqual(
    refused('invalid', 'the first message of the stream must be start'),
  );
  for (const [asked, options, error] of [
    [{}, {}, refused('unimplemented', 'input must be stdin or pty')],
    [{ input: {} }, {}, refused('unimplemented', 'input must be stdin or pty')],
    [{ input: { stdin: base64('a') } }, { input: null }, refused('internal', 'has no input')],
    [{ input: { pty: base64('a') } }, {}, refused('internal', 'takes input as stdin, not as pty')],
  ] as [object, Options, unknown][])
    await expect(service(programOf(options)).ask('SendInput', { ...selected, ...asked })).rejects.toEqual(error);
});

test('stdin is closed once it is asked for, and a terminal has none', async () => {
  const program = programOf();
  expect(await service(program).ask('CloseStdin', selected)).toEqual({});
  expect(program.did).toEqual(['close']);
  expect(await service(programOf({ input: null })).ask('CloseStdin', selected)).toEqual({});
  const terminal = programOf({ names: ['pty'], input: 'pty' });
  await expect(service(terminal).ask('CloseStdin', selected)).rejects.toEqual(refused('unknown', 'send the byte 0x04'));
  expect(terminal.did).toEqual([]);
});

test('signals are sent by name and by number, and no other than the two', async () => {
  for (const [signal, number] of [
    ['SIGNAL_SIGTERM', 15],
    ['SIGNAL_SIGKILL', 9],
    [15, 15],
    [9, 9],
  ] as const) {
    const program = programOf();
    await service(program).ask('SendSignal', { ...selected, signal });
    expect(program.did[0]).toEqual(['signal', number]);
  }
  const program = programOf();
  for (const signal of ['SIGNAL_SIGHUP', 1, undefined])
    await expect(service(program).ask('SendSignal', { ...selected, signal })).rejects.toEqual(
      refused('unimplemented', `signal ${signal ?? 'UNSPECIFIED'} can't be sent`),
    );
  expect(program.did).toEqual([]);
  const over = programOf();
  const { ask } = service(over);
  over.exit({ exitCode: 0 });
  await over.closeOutputs();
  await settled();
  await expect(ask('SendSignal', { ...selected, signal: 9 })).rejects.toEqual(refused('not_found', 'has ended'));
});

test('a terminal is resized, and a process without one can’t be', async () => {
  const terminal = programOf({ names: ['pty'], input: 'pty' });
  const size = { pty: { size: { cols: 80, rows: 25 } } };
  expect(await service(terminal).ask('Update', { ...selected, ...size })).toEqual({});
  expect(terminal.did).toEqual([['resize', { cols: 80, rows: 25 }]]);
  await expect(service(programOf()).ask('Update', { ...selected, ...size })).rejects.toEqual(
    refused('internal', 'has no terminal'),
  );
  expect(await service(programOf()).ask('Update', selected)).toEqual({});
});

test('who connects gets what comes from then on; of a terminal all, where that is asked for', async () => {
  const { print, exit, closeOutputs, ...program } = programOf({ names: ['pty'], input: 'pty' });
  const { connect } = service({ print, exit, closeOutputs, ...program });
  await print('pty', 'before');
  await settled();
  const [whole, fromNow, gone] = [connect({ ...selected, replay: true }), connect(selected), connect(selected)];
  gone.outbox.abandon();
  await print('pty', 'after');
  exit({ exitCode: 0 });
  await closeOutputs();
  expect((await whole.events()).slice(0, 3)).toEqual([
    { start: { pid: 7, replayed: 6 } },
    data('pty', 'before'),
    data('pty', 'after'),
  ]);
  expect((await fromNow.events()).slice(0, 2)).toEqual([{ start: { pid: 7 } }, data('pty', 'after')]);
});

test('a client that connects to an ended process gets its end', async () => {
  const program = programOf();
  const { connect } = service(program);
  program.exit({ exitCode: 0 });
  await program.closeOutputs();
  await settled();
  expect(await connect(selected).events()).toEqual([
    { start: { pid: 7 } },
    { end: { exited: true, status: 'exit status 0' } },
    { closed: {} },
  ]);
});

test('the timeout of a connection ends the connection, and not the process', async () => {
  const program = programOf();
  const events = await service(program).connect(selected, { timeoutMs: 1 }).events();
  expect(events.at(-1)).toMatchObject({ closed: { code: 'deadline_exceeded' } });
  expect([program.process.isAlive, program.did]).toEqual([true, []]);
});
