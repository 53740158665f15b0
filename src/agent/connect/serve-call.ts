import { AtollError } from '../../base/error.ts';
import {
  readCall,
  type Call,
  type Method,
  type ServerStreamMethod,
  type UnaryMethod,
  type ClientStreamMethod,
} from './call.ts';
import { wireErrorOf, type WireError } from './code.ts';
import { connectStatus } from '../../protocol/connect-status.ts';
import { encodeEnd, encodeMessage, parseJson, readMessages } from './envelope.ts';
import { asMessage } from './message.ts';
import { Outbox } from './outbox.ts';
import { readBounded } from '../bounded-body.ts';

const streamType = 'application/connect+json';
/** Limit of the message that opens a stream: a command line and its environment. */
const openingBytesMax = 4 << 20;

/** Answers a call of the Connect protocol with its JSON codec (connectrpc.com/docs/protocol). Never throws. */
export async function serveCall(method: Method, request: Request): Promise<Response> {
  const type = (request.headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase();
  const expected = method.kind === 'unary' ? 'application/json' : streamType;
  if (type !== expected) return new Response(null, { status: 415, headers: { 'accept-post': expected } });
  try {
    const call = readCall(request.headers);
    if (method.kind === 'unary') return await answerUnary(method, request, call);
    if (method.kind === 'client-stream') return await answerClientStream(method, request, call);
    return await answerServerStream(method, request, call);
  } catch (error) {
    return method.kind === 'unary' ? unaryError(wireErrorOf(error)) : streamError(wireErrorOf(error));
  }
}

async function answerUnary(method: UnaryMethod, request: Request, call: Call): Promise<Response> {
  const coding = request.headers.get('content-encoding') ?? 'identity';
  if (coding !== 'identity')
    throw new AtollError('unimplemented', `messages in content encoding '${coding}' are not accepted`);
  const body = await readBounded(request, method.messageBytesMax);
  const message = asMessage(parseJson(body));
  const answer = await beforeDeadline(method.answer(message, call), call.timeoutMs);
  return new Response(JSON.stringify(answer), { headers: { 'content-type': 'application/json' } });
}

async function answerClientStream(method: ClientStreamMethod, request: Request, call: Call): Promise<Response> {
  const answer = await beforeDeadline(
    method.answer(readMessages(request.body, method.messageBytesMax), call),
    call.timeoutMs,
  );
  return new Response(Buffer.concat([encodeMessage(answer), encodeEnd()]), { headers: { 'content-type': streamType } });
}

async function answerServerStream(method: ServerStreamMethod, request: Request, call: Call): Promise<Response> {
  const { value: opening } = await readMessages(await openingOf(request), openingBytesMax).next();
  if (opening === undefined) throw new AtollError('invalid', 'the request holds no message');
  const outbox = new Outbox();
  // Only this shows that a client left before the answer began.
  request.signal.addEventListener('abort', () => outbox.abandon());
  await method.open(asMessage(opening), call, outbox);
  return new Response(outbox.stream(), { headers: { 'content-type': streamType } });
}

/**
 * The body of a request that opens a stream. A body with an announced length is read at once: a stream has a buffer of
 * 256 KiB, for which the runtime collects garbage.
 */
async function openingOf(request: Request): Promise<AsyncIterable<Uint8Array> | Iterable<Uint8Array> | null> {
  const announced = request.headers.get('content-length');
  if (announced === null || Number(announced) > openingBytesMax) return request.body;
  return [new Uint8Array(await request.arrayBuffer())];
}

/** The answer, or `deadline_exceeded` if it takes longer. The work goes on, because a unary call can't be half done. */
async function beforeDeadline<T>(answer: T | Promise<T>, timeoutMs: number | undefined): Promise<T> {
  if (timeoutMs === undefined || !(answer instanceof Promise)) return answer;
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new AtollError('deadline_exceeded', `not done within ${timeoutMs} ms`)),
    timeoutMs,
  );
  try {
    return await Promise.race([answer, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function unaryError(error: WireError): Response {
  return new Response(JSON.stringify(error), {
    status: connectStatus[error.code],
    headers: { 'content-type': 'application/json' },
  });
}

function streamError(error: WireError): Response {
  return new Response(encodeEnd(error), { headers: { 'content-type': streamType } });
}
