import { AtollError } from '../../base/error.ts';
import type { Call, Method } from '../connect/call.ts';
import { deadline } from '../connect/deadline.ts';
import { keepAlive } from '../connect/keepalive.ts';
import { asMessage, booleanField, bytesField, enumField, messageField, type Message } from '../connect/message.ts';
import type { Outbox } from '../connect/outbox.ts';
import { readTerminalSize } from './config.ts';
import type { Process } from './process.ts';
import type { ProcessHost } from './process-host.ts';
import { start } from './start.ts';

/** Limit of a message that names a process. */
const smallBytesMax = 64 << 10;
/** Limit of the input in one message, as base64 in JSON. */
const inputBytesMax = 128 << 20;

/** By name, and by number as protobuf allows. */
const signals = new Map([
  ['SIGNAL_SIGTERM', 15],
  ['SIGNAL_SIGKILL', 9],
  ['15', 15],
  ['9', 9],
]);

/** The service `process.Process`. */
export function processMethods(agent: ProcessHost): [path: string, method: Method][] {
  const { processes } = agent;
  const unary = (name: string, messageBytesMax: number, answer: (message: Message) => unknown): [string, Method] => [
    `/process.Process/${name}`,
    { kind: 'unary', messageBytesMax, answer },
  ];
  return [
    [
      '/process.Process/Start',
      { kind: 'server-stream', open: (message, call, outbox) => start(agent, message, call, outbox) },
    ],
    [
      '/process.Process/Connect',
      { kind: 'server-stream', open: (message, call, outbox) => connect(agent, message, call, outbox) },
    ],
    [
      '/process.Process/StreamInput',
      { kind: 'client-stream', messageBytesMax: inputBytesMax, answer: messages => streamInput(agent, messages) },
    ],
    unary('List', smallBytesMax, () => list(processes.alive())),
    unary('SendInput', inputBytesMax, message =>
      sendInput(processes.selectAlive(message), messageField(message, 'input')),
    ),
    unary('SendSignal', smallBytesMax, message => sendSignal(agent, message)),
    unary('CloseStdin', smallBytesMax, message => closeStdin(processes.selectAlive(message))),
    unary('Update', smallBytesMax, message => update(processes.selectAlive(message), message)),
  ];
}

function connect(agent: Pick<ProcessHost, 'processes'>, message: Message, call: Call, outbox: Outbox): void {
  const selected = agent.processes.select(message);
  if ('event' in selected) {
    outbox.addMessage({ event: { start: { pid: selected.pid } } });
    outbox.addMessage({ event: { end: selected.event } });
    outbox.end();
    return;
  }
  const { process } = selected;
  // An extension of Atoll: what a terminal has shown comes first.
  process.attach(outbox, { replays: booleanField(message, 'replay') ?? false });
  outbox.onClose = () => process.detach(outbox);
  deadline(outbox, call.timeoutMs, 'the timeout of the call is over; the process goes on');
  keepAlive(outbox, call.keepaliveMs);
}

const list = (processes: Process[]) =>
  processes.length === 0
    ? {}
    : { processes: processes.map(({ config, pid, tag }) => ({ config, pid, ...(tag === undefined ? {} : { tag }) })) };

async function sendInput(process: Process, input: Message | undefined): Promise<object> {
  const kind = input && ['stdin', 'pty'].find(one => bytesField(input, one) !== undefined);
  const bytes = input && kind && bytesField(input, kind);
  if (!bytes) throw new AtollError('unimplemented', 'input must be stdin or pty');
  if (!process.program.input) throw new AtollError('internal', 'the process has no input');
  if (process.program.input.kind !== kind)
    throw new AtollError('internal', `the process takes input as ${process.program.input.kind}, not as ${kind}`);
  await process.program.input.write(bytes);
  return {};
}

async function streamInput(agent: Pick<ProcessHost, 'processes'>, messages: AsyncIterable<unknown>): Promise<object> {
  let process: Process | undefined;
  for await (const item of messages) {
    const message = asMessage(item);
    const opening = messageField(message, 'start');
    const data = messageField(message, 'data');
    if (opening) process = agent.processes.selectAlive(opening);
    else if (!process) throw new AtollError('invalid', 'the first message of the stream must be start');
    else if (data) await sendInput(process, messageField(data, 'input'));
  }
  return {};
}

function sendSignal(agent: Pick<ProcessHost, 'processes'>, message: Message): object {
  const asked = enumField(message, 'signal');
  const selected = agent.processes.select(message);
  if (!('process' in selected)) throw new AtollError('not_found', 'the process has ended');
  const number = signals.get(String(asked));
  if (number === undefined)
    throw new AtollError(
      'unimplemented',
      `signal ${asked ?? 'UNSPECIFIED'} can't be sent: SIGNAL_SIGTERM and SIGNAL_SIGKILL can`,
    );
  selected.process.signal(number);
  return {};
}

async function closeStdin(process: Process): Promise<object> {
  const { input } = process.program;
  if (input?.kind === 'pty')
    throw new AtollError('unknown', 'a terminal has no stdin to close: send the byte 0x04 instead');
  await input?.close();
  return {};
}

function update(process: Process, message: Message): object {
  const pty = messageField(message, 'pty');
  if (pty && !process.program.resize(readTerminalSize(pty)))
    throw new AtollError('internal', 'the process has no terminal');
  return {};
}
