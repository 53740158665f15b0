import { Sandbox } from 'e2b';
import type { TestPlatform } from '../../support/platform.ts';

/** Names as long and odd as people choose them. */
const sandboxes: { metadata: Record<string, string>; end?: 'pause' | 'kill' }[] = [
  { metadata: { agent: 'researcher', run: '2291' } },
  { metadata: { agent: 'coder', repository: 'a-rather-long-organisation-name/service-of-many-words', branch: 'main' } },
  { metadata: {} },
  { metadata: { agent: 'coder', run: '2292' }, end: 'pause' },
  { metadata: { customer: 'Zoë & Søns GmbH', step: 'evaluation' } },
  { metadata: { agent: 'researcher', run: '2280' }, end: 'kill' },
];

const program = `import time
for step in range(6):
    print(f"step {step}: {'#' * (step * 6)}")
    time.sleep(0.2)
`;

/** Works more and less in turn for some minutes, and takes memory in steps: something to see in plots. */
const work = `import time
kept = []
for second in range(240):
    end = time.monotonic() + (second * 7 % 10) / 20
    while time.monotonic() < end: pass
    if second % 12 == 0: kept.append(bytearray(b'x' * 12_000_000))
    time.sleep(0.6)
`;

/** Fills a platform with what a small team has. Answers the sandbox to look into, whose files and logs are filled. */
export async function fill(platform: TestPlatform): Promise<string> {
  const { ready } = platform;
  const ask = async (method: string, path: string, body?: unknown) => {
    const response = await platform.api(method, path, body);
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    return response.status === 204 ? null : ((await response.json()) as Record<string, string>);
  };
  const made: string[] = [];
  for (const { metadata, end } of sandboxes) {
    const answer = await ask('POST', '/v2/sandboxes', { templateID: 'base', timeout: 1800, secure: true, metadata });
    const id = answer?.['sandboxID'] ?? '';
    if (end === 'pause') await ask('POST', `/sandboxes/${id}/pause`);
    else if (end === 'kill') await ask('DELETE', `/sandboxes/${id}`);
    else made.push(id);
  }
  const [id = ''] = made;
  const connection = { apiKey: ready.apiKey, apiUrl: ready.url, sandboxUrl: ready.url, domain: ready.domain };
  const sandbox = await Sandbox.connect(id, { ...connection, timeoutMs: 1_800_000 });
  await sandbox.files.write('/home/user/agent/main.py', program);
  await sandbox.files.write('/home/user/agent/a-file-whose-name-nobody-will-ever-want-to-type-again.ipynb', '{}');
  await sandbox.files.write('/home/user/README.md', '# What the agent made\n');
  await sandbox.commands.run('python3 agent/main.py');
  for (const busy of made) {
    const at = await Sandbox.connect(busy, { ...connection, timeoutMs: 1_800_000 });
    await at.files.write('/tmp/work.py', work);
    await at.commands.run('python3 /tmp/work.py', { background: true });
  }
  await ask('POST', `/sandboxes/${id}/snapshots`, { name: 'before-the-migration' });
  for (const name of ['datasets', 'build-cache']) await ask('POST', '/volumes', { name });
  for (const name of ['GITHUB_TOKEN', 'STRIPE_KEY']) await ask('POST', '/secrets', { name, value: 'a value' });
  await ask('POST', '/events/webhooks', {
    name: 'billing',
    url: 'https://billing.example.com/hooks/atoll',
    events: ['sandbox.lifecycle.created', 'sandbox.lifecycle.killed'],
    enabled: false,
  });
  return id;
}
