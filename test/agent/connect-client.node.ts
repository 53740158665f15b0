import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { describeProcessService } from './support/process-service.ts';
import { startAgent, type TestAgent } from './support/test-agent.ts';

type Choice = { case: string; value: Record<string, unknown> & { choice?: { case: string; value: Uint8Array } } };
type Options = { timeoutMs?: number; headers?: Record<string, string> };
/** The methods that the official client derives from the service's description. */
type ProcessClient = {
  start(request: unknown, options?: Options): AsyncIterable<{ event: { choice: Choice } }>;
  streamInput(requests: AsyncIterable<unknown>): Promise<object>;
  closeStdin(request: unknown): Promise<object>;
};

let agent: TestAgent;
let client: ProcessClient;
before(async () => {
  agent = await startAgent();
  client = createClient(
    describeProcessService(),
    createConnectTransport({ baseUrl: agent.url, httpVersion: '1.1', useBinaryFormat: false }),
  ) as unknown as ProcessClient;
});
after(() => agent[Symbol.asyncDispose]());

const codeOf = async (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => (error instanceof ConnectError ? error.code : error),
  );

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream) continue;
}

test('a stream of the server, fed by a stream of the client', async () => {
  let output = '';
  const order: string[] = [];
  for await (const { event } of client.start({ process: { cmd: '/bin/cat' }, stdin: true })) {
    const { choice } = event;
    order.push(choice.case);
    if (choice.case === 'start') {
      const process = { choice: { case: 'pid', value: choice.value['pid'] } };
      const requests = async function* () {
        yield { choice: { case: 'start', value: { process } } };
        for (const text of ['one ', 'two\n'])
          yield {
            choice: {
              case: 'data',
              value: { input: { choice: { case: 'stdin', value: new TextEncoder().encode(text) } } },
            },
          };
      };
      await client.streamInput(requests());
      await client.closeStdin({ process });
    }
    if (choice.case === 'data') output += new TextDecoder().decode(choice.value.choice?.value);
    if (choice.case === 'end')
      assert.deepEqual(
        [choice.value['exitCode'], choice.value['exited'], choice.value['status']],
        [0, true, 'exit status 0'],
      );
  }
  assert.equal(output, 'one two\n');
  assert.deepEqual([order[0], order.at(-1)], ['start', 'end']);
});

test('errors have their codes: of calls, of streams both ways, of deadlines', async () => {
  const nobody = { choice: { case: 'pid', value: 3_999_999 } };
  assert.equal(await codeOf(client.closeStdin({ process: nobody })), Code.NotFound);
  const requests = async function* () {
    yield { choice: { case: 'start', value: { process: nobody } } };
  };
  assert.equal(await codeOf(client.streamInput(requests())), Code.NotFound);
  const stranger = { headers: { Authorization: `Basic ${btoa('stranger:')}` } };
  assert.equal(await codeOf(drain(client.start({ process: { cmd: 'true' } }, stranger))), Code.Unauthenticated);
  assert.equal(
    await codeOf(drain(client.start({ process: { cmd: '/bin/sleep', args: ['1000'] } }, { timeoutMs: 300 }))),
    Code.DeadlineExceeded,
  );
});
