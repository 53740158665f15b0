import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../../support/platform.ts';
import { runToEnd } from '../../support/process.ts';
import { pythonTimeoutMs, pythonWithSdk } from '../../support/python.ts';
import { Platform } from '../platform.ts';
import {
  type ClientOperations,
  membersOfPython,
  operationsOfJavaScript,
  operationsOfPython,
} from '../support/client-operations.ts';
import { membersOfDocument, operationsOfDocument } from '../support/document-operations.ts';

// Every operation, and every field of a request, that the installed clients know, compared with the API's document: a
// field of a newer client shows up here and either takes effect, is refused by name, or is in the list below with the
// reason. The same for what the newest of them reads in answers.

const written: unknown = JSON.parse(readFileSync(join(repository, 'docs/openapi.json'), 'utf8'));
const document = operationsOfDocument(written as Parameters<typeof operationsOfDocument>[0]);

/** Fields that the document does not name, and what happens to them. */
const unnamed: Record<string, string> = {
  'POST /sandboxes body.mcp.*': 'passed on as it is: servers are named by their template',
  'POST /v2/sandboxes body.mcp.*': 'passed on as it is: servers are named by their template',
};

/** Members that the newest client reads in answers but no answer has, and why. */
const unanswered: Record<string, string> = { description: 'no request that a client has gives a template one' };

function missing(client: ClientOperations): string[] {
  return [...client].filter(line => !document.has(line) && !(line in unnamed));
}

test('the npm client knows nothing that is missing', () => {
  const client = operationsOfJavaScript(readFileSync(join(repository, 'node_modules/e2b/dist/index.d.ts'), 'utf8'));
  // If nothing was read, nothing would be found missing.
  expect(client.size).toBeGreaterThan(200);
  expect(client).toContain('POST /v2/sandboxes body.network.egressProxy.address');
  expect(missing(client)).toEqual([]);
});

test(
  'the PyPI client knows nothing that is missing',
  async () => {
    const python = await pythonWithSdk();
    if ('missing' in python) throw new Error(python.missing);
    const client = operationsOfPython(await folderOfPython(python.program));
    expect(client.size).toBeGreaterThan(200);
    expect(client).toContain('POST /v2/sandboxes body.network.egressProxy.tls.enabled');
    expect(missing(client)).toEqual([]);
  },
  pythonTimeoutMs,
);

test(
  'the PyPI client reads no member of answers that is missing',
  async () => {
    const python = await pythonWithSdk();
    if ('missing' in python) throw new Error(python.missing);
    const read = membersOfPython(await folderOfPython(python.program));
    expect(read.size).toBeGreaterThan(100);
    expect(read).toContain('pauseMode');
    const members = membersOfDocument(written);
    expect([...read].filter(name => !members.has(name)).toSorted()).toEqual(Object.keys(unanswered));
  },
  pythonTimeoutMs,
);

async function folderOfPython(program: string): Promise<string> {
  return (await runToEnd([program, '-c', 'import e2b.api.client as c; print(c.__path__[0])'])).stdout.trim();
}

test('what has no effect is refused by name', async () => {
  await using platform = await Platform.start({ features: { egressProxy: true } });
  const egressProxy = { address: 'proxy.example.com:1080' };
  const refused = async (path: string, body: object) => {
    const answer = await platform.call('POST', path, body);
    return `${answer.status} ${(answer.body as { message: string }).message}`;
  };
  const create = (network: object) => refused('/v2/sandboxes', { templateID: 'base', network });
  expect(await create({ egressProxy: { ...egressProxy, tls: { enabled: true } } })).toBe(
    '400 network.egressProxy.tls.enabled: must be false (True is refused: the proxy is spoken to without TLS)',
  );
  expect(await create({ dnsServers: ['9.9.9.9'] })).toBe(
    '400 network.dnsServers: must be empty (Others than those of the installation are refused)',
  );
  const { sandboxID } = await platform.createSandbox({
    network: { egressProxy: { ...egressProxy, tls: { enabled: false } }, dnsServers: [] },
  });
  expect(platform.node.networks.get(sandboxID)).toEqual({ internetAccess: true, egressProxy });
});

test('a pause that requires a healthy guest leaves a sandbox running whose agent does not answer', async () => {
  await using platform = await Platform.start();
  const { sandboxID } = await platform.createSandbox();
  const pause = (body: object) => platform.call('POST', `/sandboxes/${sandboxID}/pause`, body);
  const state = async () => (await platform.call('GET', `/sandboxes/${sandboxID}`)).body;
  platform.node.agentAnswers = false;
  const refused = await pause({ requireHealthyGuest: true });
  expect(refused).toMatchObject({ status: 503, body: { message: expect.stringContaining('agent') } });
  expect(await state()).toMatchObject({ state: 'running' });
  platform.node.agentAnswers = true;
  expect((await pause({ requireHealthyGuest: true })).status).toBe(204);
  expect(await state()).toMatchObject({ state: 'paused' });
});

test('a snapshot keeps memory unless it is told not to', async () => {
  await using platform = await Platform.start();
  const { sandboxID } = await platform.createSandbox();
  const asked: unknown[] = [];
  platform.node.before = async (call, request) => {
    if (call === 'snapshot' && request && 'memory' in request) asked.push(request.memory);
  };
  for (const body of [{}, { memory: true }, { memory: false }])
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/snapshots`, body)).status).toBe(201);
  expect(asked).toEqual([true, true, false]);
});
