import { afterEach, expect, spyOn, test } from 'bun:test';
import { agentFile, callAgent, streamAgent, streamFailure } from './agent.ts';
import { endFlag, joinEnvelope } from './envelope.ts';

/** The requests to an agent that gives this answer. */
function agent(answer: () => Promise<Response>) {
  const asked: [path: string, init: RequestInit & { headers: Record<string, string> }][] = [];
  spyOn(globalThis, 'fetch').mockImplementation(((path: never, init: never) => {
    asked.push([path, init]);
    return answer();
  }) as typeof fetch);
  return asked;
}
afterEach(() => void (fetch as unknown as { mockRestore?(): void }).mockRestore?.());
const target = { sandboxId: 'i1', token: null };
const signal = new AbortController().signal;

/** A stream of messages; `end` is the content of the last one. Without it, the stream is cut off. */
const stream = (messages: object[], end?: object) => async () => {
  const last = joinEnvelope(JSON.stringify(end));
  last[0] = endFlag;
  return new Response(new Blob([...messages.map(one => joinEnvelope(JSON.stringify(one))), ...(end ? [last] : [])]));
};
const read = () => Array.fromAsync(streamAgent<object>(target, 'process.Process/Connect', {}, signal));

test('an agent is asked through the edge, without the session, and only while its sandbox runs', async () => {
  const asked = agent(async () => Response.json({ pid: 1 }));
  expect(await callAgent<object>({ ...target, token: 'secret', user: 'root' }, 'a.B/C', { d: 1 })).toEqual({ pid: 1 });
  await agentFile(target, { path: '/a b' }, { method: 'POST', headers: { 'X-Own': '1' } });
  await agentFile({ ...target, user: 'root' }, {});
  const [[path, init], [filePath, fileInit], [rootPath]] = asked as [(typeof asked)[0], (typeof asked)[0], [string]];
  expect([path, filePath, rootPath]).toEqual(['/a.B/C', '/files?username=user&path=%2Fa+b', '/files?username=root']);
  expect(init).toMatchObject({ method: 'POST', credentials: 'omit', cache: 'no-store', body: '{"d":1}' });
  expect(init.headers).toMatchObject({
    'E2b-Sandbox-Id': 'i1',
    'E2b-Sandbox-Port': '49983',
    Authorization: `Basic ${btoa('root:')}`,
    'X-Access-Token': 'secret',
  });
  expect(fileInit.headers).toMatchObject({ Authorization: `Basic ${btoa('user:')}`, 'X-Own': '1' });
  expect(fileInit.headers).not.toHaveProperty('X-Access-Token');
});

test('a stream tells its messages and ends, fails as it says, or was lost', async () => {
  agent(stream([{ a: 1 }, { a: 2 }], {}));
  expect(await read()).toEqual([{ a: 1 }, { a: 2 }]);
  agent(stream([], { error: { code: 'not_found', message: 'gone' } }));
  await expect(read()).rejects.toMatchObject({ status: 404, message: 'gone' });
  agent(stream([{ a: 1 }]));
  await expect(read()).rejects.toMatchObject({ status: 0, message: 'The connection to the sandbox was lost' });
});

test('a sandbox that is away says so, one that refuses is heard, and what was given up is no failure', async () => {
  agent(() => Promise.reject(new TypeError('cut')));
  await expect(callAgent(target, 'a', {})).rejects.toMatchObject({ status: 0, message: 'The sandbox does not answer' });
  const over = AbortSignal.abort();
  await expect(agentFile(target, {}, { signal: over })).rejects.toThrow(new TypeError('cut'));
  agent(async () => Response.json({ message: 'no' }, { status: 403 }));
  await expect(callAgent(target, 'a', {})).rejects.toMatchObject({ status: 403, message: 'no' });
});

test('the end of a stream keeps its code, with the status that a call with one answer would have had', () => {
  const told = ({ status, code, message }: ReturnType<typeof streamFailure>) => [status, code, message];
  expect(told(streamFailure({ code: 'not_found', message: 'gone' }))).toEqual([404, 'not_found', 'gone']);
  expect(told(streamFailure({ code: 'unavailable', message: 'later' }))).toEqual([503, 'unavailable', 'later']);
  expect(told(streamFailure({ code: 'constructor', message: 'odd' }))).toEqual([500, 'constructor', 'odd']);
  expect(told(streamFailure({}))).toEqual([500, '', 'The stream ended with an error']);
});
