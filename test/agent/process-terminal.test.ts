import { expect, test } from 'bun:test';
import { finish, outputUntil, start, startedPid, type ProcessEvent } from './support/process.ts';
import { stream, unary, unaryError, type RpcStream } from './support/rpc.ts';
import { sharedAgent } from './support/shared-agent.ts';
import { addUser, as } from './support/users.ts';

const agent = sharedAgent();

const size = (cols: number, rows: number) => ({ size: { cols, rows } });
const type = (pid: number, text: string) =>
  unary(agent, 'process.Process/SendInput', { process: { pid }, input: { pty: Buffer.from(text).toString('base64') } });

async function startTerminal(args: string[], headers = {}): Promise<{ events: RpcStream<ProcessEvent>; pid: number }> {
  const events = await start(
    agent,
    { process: { cmd: '/bin/bash', args, envs: { TERM: 'xterm-256color', PS1: 'prompt> ' } }, pty: size(91, 17) },
    headers,
  );
  return { events, pid: await startedPid(events) };
}

test('a login shell has a terminal of the size that was asked for, and job control', async () => {
  const { events, pid } = await startTerminal(['--norc', '--noprofile', '-i', '-l']);
  await outputUntil(events, 'prompt> ');
  await type(pid, 'stty size; tty; ps -o pid=,pgid=,sid=,tpgid= -p $$; exit 9\n');
  const { pty, end, stdout, stderr } = await finish(events);
  expect(pty).toContain('17 91\r\n');
  expect(pty).toContain('/dev/pts/');
  expect(pty.replace(/\s+/g, ' ')).toContain(`${pid} ${pid} ${pid}`);
  expect({ stdout, stderr, end }).toMatchObject({ stdout: '', stderr: '', end: { exitCode: 9 } });
});

test('resizing tells the programs in it', async () => {
  const { events, pid } = await startTerminal([
    '--norc',
    '-c',
    'trap "stty size" WINCH; echo ready; while :; do sleep 0.05; done',
  ]);
  await outputUntil(events, 'ready');
  expect((await unary(agent, 'process.Process/Update', { process: { pid }, pty: size(123, 45) })).body).toEqual({});
  expect(await outputUntil(events, '45 123')).toContain('45 123');
  await unary(agent, 'process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' });
  expect((await finish(events)).end?.status).toBe('signal: killed');
});

test('keys that mean signals are signals', async () => {
  const { events, pid } = await startTerminal([
    '--norc',
    '-c',
    'trap "echo interrupted; exit 3" INT; echo ready; while :; do sleep 0.05; done',
  ]);
  await outputUntil(events, 'ready');
  await type(pid, '\x03');
  const { pty, end } = await finish(events);
  expect(pty).toContain('interrupted');
  expect(end?.exitCode).toBe(3);
});

test('the end of input is a key, not CloseStdin, and input of the other kind is refused', async () => {
  const { events, pid } = await startTerminal(['--norc', '-c', 'cat; echo over']);
  expect(await unaryError(agent, 'process.Process/CloseStdin', { process: { pid } })).toBe('500 unknown');
  expect(await unaryError(agent, 'process.Process/SendInput', { process: { pid }, input: { stdin: 'eA==' } })).toBe(
    '500 internal',
  );
  await type(pid, 'text\n\x04');
  expect((await finish(events)).pty).toContain('over');
});

/** A terminal's replay, with the length that the start event gives. */
async function replayed(events: RpcStream<ProcessEvent>): Promise<string> {
  const bytes = (await events.next())?.event.start?.replayed ?? 0;
  const parts: Buffer[] = [];
  while (Buffer.concat(parts).length < bytes)
    parts.push(Buffer.from((await events.next())?.event.data?.pty ?? '', 'base64'));
  return Buffer.concat(parts).toString();
}

test('who attaches later is shown what the terminal has shown, once, also what came while nobody was there', async () => {
  const { events, pid } = await startTerminal(['--norc', '--noprofile', '-i']);
  await outputUntil(events, 'prompt> ');
  await type(pid, 'echo $((6*7)); sleep 0.3; echo alo""ne\n');
  await outputUntil(events, '42');
  events.abort();
  const connect = (body: object) =>
    stream<ProcessEvent>(agent, 'process.Process/Connect', { process: { pid }, ...body });
  // No event reports it, so this asks until it is there.
  for (;;) {
    const again = await connect({ replay: true });
    const shown = await replayed(again);
    again.abort();
    // The prompt after it is the last output before anybody types.
    if (shown.split('\nalone').at(1)?.includes('prompt> ')) break;
  }
  const [first, second] = [await connect({ replay: true }), await connect({})];
  const shown = await replayed(first);
  expect(shown.match(/prompt> /g)?.length).toBe(2);
  expect(shown.match(/42\r/g)?.length).toBe(1);
  await startedPid(second);
  await type(pid, 'exit 4\n');
  const ends = [await finish(first), await finish(second)];
  for (const { pty, end } of ends) {
    expect(end?.exitCode).toBe(4);
    expect(pty).not.toContain('42');
  }
});

test('the terminal is the user’s own', async () => {
  addUser(agent, 'typist', 4600);
  const { events, pid } = await startTerminal(
    ['--norc', '-c', 'stat -c "%U %a" $(tty); echo again > $(tty); echo end'],
    as('typist'),
  );
  const { pty } = await finish(events);
  expect(pid).toBeGreaterThan(1);
  expect(pty).toContain('typist 620\r\nagain\r\nend');
});

test('50 MB through a terminal arrive whole', async () => {
  const { events } = await startTerminal(['--norc', '-c', 'head -c 50000000 /dev/zero | tr "\\0" x']);
  expect((await finish(events)).pty.length).toBe(50_000_000);
});

test('a sandbox whose terminals are used up says so', async () => {
  const { events, pid } = await startTerminal([
    '--norc',
    '-c',
    'mv /dev/ptmx /dev/gone; echo moved; read back; mv /dev/gone /dev/ptmx',
  ]);
  await outputUntil(events, 'moved');
  const refused = await finish(await start(agent, { process: { cmd: '/bin/bash' }, pty: size(80, 24) }));
  expect(refused.error?.code).toBe('invalid_argument');
  await type(pid, '\n');
  await finish(events);
});
