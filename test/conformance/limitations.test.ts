import { afterAll, beforeAll, expect, test } from 'bun:test';
import { newUuid } from '../../src/base/id.ts';
import { limitations, type Limitation } from '../../src/node/drivers/gvisor/limitations.ts';
import type { NodeSandbox } from '../../src/protocol/node.ts';
import { requestSandbox, runInSandbox } from '../node/support/run-in-sandbox.ts';
import { startTestNode, type TestNode } from '../node/support/test-node.ts';
import { describeDrivers } from './subjects.ts';

/**
 * Each limitation of a driver, as an expectation of what happens instead. `outOfMemory` and `setuid` have tests among
 * their kind.
 */
const expectations: Record<Limitation, (it: TestNode, sandbox: NodeSandbox) => Promise<void>> = {
  async memory(it, sandbox) {
    const { protocol } = it.node;
    const refusal = { code: 'precondition', message: expect.stringContaining('gVisor') };
    expect(await protocol.memoryAbility(sandbox)).toMatchObject({ kept: false, reason: refusal.message });
    await expect(protocol.pause(sandbox, { memory: true })).rejects.toMatchObject(refusal);
    await expect(protocol.snapshot({ ...sandbox, snapshotId: newUuid(), memory: true })).rejects.toMatchObject(refusal);
    expect((await protocol.list()).map(({ sandboxId }) => sandboxId)).toContain(sandbox.sandboxId);
  },
  async setuid(it, { sandboxId }) {
    expect((await runInSandbox(it.node.protocol, sandboxId, 'sudo -n true', 'user')).stderr).toContain(
      'no new privileges',
    );
  },
  async attributes(it, { sandboxId }) {
    const { stderr } = await runInSandbox(
      it.node.protocol,
      sandboxId,
      `touch /root/f && python3 -c 'import os; os.setxattr("/root/f", "user.a", b"b")'`,
    );
    expect(stderr).toContain('Operation not supported');
  },
  outOfMemory: async () => {},
  async pool(it) {
    expect((await it.node.protocol.usage()).pool).toMatchObject({ size: 0, ready: 0 });
  },
  async addresses(it, { sandboxId }) {
    const server =
      'import http.server as h; H=type("H",(h.BaseHTTPRequestHandler,),{"do_GET":lambda s:(s.send_response(200),s.end_headers(),s.wfile.write(s.client_address[0].encode()))})';
    const serve = (address: string, port: number) =>
      `(setsid python3 -c '${server}; h.HTTPServer(("${address}",${port}),H).serve_forever()' >/dev/null 2>&1 &)`;
    const open = (port: number) =>
      `until python3 -c 'import socket; socket.create_connection(("127.0.0.1",${port}))' 2>/dev/null; do sleep 0.05; done`;
    await runInSandbox(
      it.node.protocol,
      sandboxId,
      `${serve('0.0.0.0', 8001)}; ${serve('127.0.0.1', 8002)}; ${open(8001)}; ${open(8002)}`,
    );
    const seen = async (port: number) =>
      (await requestSandbox(it.node.protocol, sandboxId, port, 'GET', '/')).body.toString();
    expect([await seen(8001), await seen(8002)]).toEqual(['169.254.0.26', '127.0.0.1']);
  },
};

describeDrivers(subject => {
  if (subject.driver === 'crun')
    return void test('nothing is to be expected otherwise', () => expect(subject.cannot('memory')).toBe(false));
  let it: TestNode;
  let sandbox: NodeSandbox;
  beforeAll(async () => {
    it = await startTestNode({ driver: subject.driver, poolSize: 1, memory: true });
    sandbox = await it.node.protocol.create(it.request());
  }, 300_000);
  afterAll(() => it.dispose());

  test.each(Object.keys(limitations) as Limitation[])('what it can’t do: %s', limitation =>
    expectations[limitation](it, sandbox),
  );
});
