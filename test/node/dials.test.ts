import { afterAll, beforeAll, expect, test } from 'bun:test';
import { closeSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../src/base/error.ts';
import { agentPort } from '../../src/protocol/agent.ts';
import { waitFor } from '../support/process.ts';
import { runInSandbox } from './support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from './support/test-node.ts';

// The cost for a node of dials into a service that accepts nothing, from any number of edges.

const port = 7000;
/** As many as one sandbox may have waiting, and some more. */
const dials = 1100;

let it: TestNode;
beforeAll(async () => (it = await startTestNode()), 300_000);
afterAll(() => it?.dispose());

test('dials that nobody answers have a share for each sandbox', async () => {
  const { protocol } = it.node;
  const sandbox = await protocol.create(it.request({ teamId: 'ours' }));
  const { sandboxId } = sandbox;
  const record = JSON.parse(readFileSync(join(it.dataDir, 'node/sandboxes', sandboxId, 'record.json'), 'utf8'));
  expect(record).toMatchObject({ teamId: 'ours' });
  const listens = `socket(S,2,1,0);bind(S,pack_sockaddr_in(${port},INADDR_ANY));listen(S,0);print "up\\n";sleep 600`;
  const started = `(setsid perl -MSocket -e '$|=1;${listens}' >/tmp/up 2>&1 &); until grep -q up /tmp/up; do sleep 0.05; done`;
  expect((await runInSandbox(protocol, sandboxId, started)).exitCode).toBe(0);

  const leaving = new AbortController();
  const ends: Record<string, number> = {};
  const all = Array.from({ length: dials }, () =>
    protocol.dial(sandboxId, port, leaving.signal).then(
      descriptor => closeSync(descriptor),
      (error: unknown) => void (ends[messageOf(error)] = (ends[messageOf(error)] ?? 0) + 1),
    ),
  );
  // The service itself accepts one or two before its queue is full; once 1,024 are waiting, further ones are refused.
  await Promise.race([all.at(-1), Bun.sleep(4_000)]);
  const refused = Object.entries(ends).find(([text]) => text.startsWith('1024 connections to this sandbox wait'));
  expect(refused?.[1]).toBeGreaterThan(50);
  // Another sandbox of the same team is still reachable.
  const other = await protocol.create(it.request({ teamId: 'ours' }));
  closeSync(await protocol.dial(other.sandboxId, agentPort));
  leaving.abort();
  await Promise.all(all);
  await waitFor('places of the dials that were given up', () =>
    protocol.dial(sandboxId, agentPort).then(
      descriptor => (closeSync(descriptor), true),
      () => false,
    ),
  );
  await Promise.all([sandbox, other].map(made => protocol.kill(made)));
}, 60_000);
