import { messageOf } from '../../../src/base/error.ts';
import type { NodeProtocol } from '../../../src/protocol/node.ts';
import { agentPort } from '../../../src/protocol/agent.ts';

type Result = { exitCode: number; stdout: string; stderr: string };

/** Runs a shell command in a sandbox through its agent, as `user`, and resolves once it has ended. */
export async function runInSandbox(
  node: NodeProtocol,
  sandboxId: string,
  command: string,
  user = 'root',
): Promise<Result> {
  const message = JSON.stringify({ process: { cmd: '/bin/sh', args: ['-c', command] }, stdin: false });
  const head = {
    'content-type': 'application/connect+json',
    'connect-protocol-version': '1',
    authorization: `Basic ${btoa(`${user}:`)}`,
  };
  const body = Buffer.concat([Buffer.from([0, 0, 0, 0, 0]), Buffer.from(message)]);
  body.writeUInt32BE(message.length, 1);
  const answer = await requestSandbox(node, sandboxId, agentPort, 'POST', '/process.Process/Start', head, body);
  try {
    return resultOf(envelopes(answer.body));
  } catch (error) {
    throw new Error(
      `${messageOf(error)}: the agent answered ${answer.status} with ${JSON.stringify(answer.body.toString())}`,
      { cause: error },
    );
  }
}

/** One request to a port of a sandbox, on its own connection. */
export async function requestSandbox(
  node: NodeProtocol,
  sandboxId: string,
  port: number,
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body: Uint8Array = new Uint8Array(),
): Promise<{ status: number; body: Buffer }> {
  const fd = await node.dial(sandboxId, port);
  const parts: Buffer[] = [];
  const closed = Promise.withResolvers<void>();
  const lines = Object.entries({
    host: 'sandbox',
    connection: 'close',
    'content-length': String(body.length),
    ...headers,
  });
  let unsent: Uint8Array = Buffer.concat([
    Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`),
    body,
  ]);
  const send = (socket: { write(data: Uint8Array): number }) => (unsent = unsent.subarray(socket.write(unsent)));
  await Bun.connect({
    fd,
    socket: {
      open: send,
      drain: send,
      data: (_: unknown, bytes: Buffer) => void parts.push(Buffer.from(bytes)),
      close: () => closed.resolve(),
      error: (_: unknown, error: Error) => closed.reject(error),
    },
  } as unknown as Parameters<typeof Bun.connect>[0]);
  await closed.promise;
  return parse(Buffer.concat(parts));
}

function parse(answer: Buffer): { status: number; body: Buffer } {
  const end = answer.indexOf('\r\n\r\n');
  if (end < 0) throw new Error(`no answer: ${answer.toString().slice(0, 200)}`);
  const head = answer.toString('latin1', 0, end);
  const body = answer.subarray(end + 4);
  return { status: Number(head.split(' ')[1]), body: /transfer-encoding: *chunked/i.test(head) ? unchunk(body) : body };
}

function unchunk(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; ;) {
    const end = body.indexOf('\r\n', at);
    const size = end < 0 ? 0 : Number.parseInt(body.toString('latin1', at, end), 16);
    if (!size) return Buffer.concat(parts);
    parts.push(body.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
}

type Message = {
  event?: { data?: { stdout?: string; stderr?: string }; end?: { exitCode?: number } };
  error?: { message: string };
};

function envelopes(body: Buffer): Message[] {
  const messages: Message[] = [];
  for (let at = 0; at + 5 <= body.length; at += 5 + body.readUInt32BE(at + 1)) {
    messages.push(JSON.parse(body.toString('utf8', at + 5, at + 5 + body.readUInt32BE(at + 1))) as Message);
  }
  return messages;
}

function resultOf(messages: Message[]): Result {
  const failed = messages.find(message => message.error);
  if (failed) throw new Error(`the agent answered: ${failed.error?.message}`);
  const end = messages.find(message => message.event?.end)?.event?.end;
  if (!end) throw new Error('the stream ended without the end of the process');
  const text = (stream: 'stdout' | 'stderr') =>
    Buffer.concat(messages.map(message => Buffer.from(message.event?.data?.[stream] ?? '', 'base64'))).toString();
  return { exitCode: end.exitCode ?? 0, stdout: text('stdout'), stderr: text('stderr') };
}
