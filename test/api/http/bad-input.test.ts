import { expect, test } from 'bun:test';
import { onEachDatabase } from '../databases.ts';
import { Platform } from '../platform.ts';

const pairs = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']));

/** The refusal that each body must get, and what the message must name. */
const createRefusals: Array<[body: Record<string, unknown>, status: number, names: string]> = [
  [{ templateID: undefined }, 400, 'templateID'],
  [{ templateID: null }, 400, 'templateID'],
  [{ templateID: 5 }, 400, 'templateID'],
  [{ templateID: '' }, 400, 'templateID'],
  [{ templateID: 'a/b/c' }, 400, 'templateID'],
  [{ templateID: 'a b' }, 400, 'templateID'],
  [{ templateID: 'base:' }, 400, 'templateID'],
  [{ templateID: ':tag' }, 400, 'templateID'],
  [{ templateID: '/base' }, 400, 'templateID'],
  [{ templateID: 'base:a:b' }, 400, 'templateID'],
  [{ templateID: 'b\u0000' }, 400, 'templateID'],
  [{ templateID: 'x'.repeat(600) }, 400, 'templateID'],
  [{ templateID: 'nothing' }, 404, 'nothing'],
  [{ templateID: 'base:v7' }, 404, 'v7'],
  [{ templateID: 'elsewhere/base' }, 404, 'elsewhere/base'],
  [{ timeout: 0 }, 400, 'timeout'],
  [{ timeout: -1 }, 400, 'timeout'],
  [{ timeout: 1.5 }, 400, 'timeout'],
  [{ timeout: '300' }, 400, 'timeout'],
  [{ timeout: true }, 400, 'timeout'],
  [{ timeout: 24 * 3600 + 1 }, 400, '24 hours'],
  [{ timeout: 2 ** 31 }, 400, 'timeout'],
  [{ timeout: 1e300 }, 400, 'timeout'],
  [{ autoPause: 'yes' }, 400, 'autoPause'],
  [{ autoPause: true }, 400, 'autoPause'],
  [{ autoPauseMemory: false }, 400, 'autoPauseMemory'],
  [{ autoPause: true, autoPauseMemory: false, autoResume: { enabled: true } }, 400, 'autoPauseMemory'],
  [{ autoResume: true }, 400, 'autoResume'],
  [{ autoResume: { enabled: 1 } }, 400, 'autoResume.enabled'],
  [{ secure: 'no' }, 400, 'secure'],
  [{ allow_internet_access: 0 }, 400, 'allow_internet_access'],
  [{ metadata: { a: 1 } }, 400, 'metadata.a'],
  [{ metadata: { a: null } }, 400, 'metadata.a'],
  [{ metadata: ['a'] }, 400, 'metadata'],
  [{ metadata: 'a=b' }, 400, 'metadata'],
  [{ metadata: { a: 'x'.repeat(300_000) } }, 400, 'metadata'],
  [{ metadata: pairs(257) }, 400, 'metadata: has 257 pairs, the most is 256'],
  [{ envVars: { A: 1 } }, 400, 'envVars.A'],
  [{ envVars: { '': 'x' } }, 400, 'envVars'],
  [{ envVars: { 'A=B': 'x' } }, 400, 'envVars'],
  [{ envVars: { A: 'x\u0000y' } }, 400, 'envVars["A"]'],
  [{ envVars: { A: 'x'.repeat(131_072) } }, 400, 'envVars["A"]'],
  [
    { envVars: Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`A${i}`, 'x'.repeat(130_000)])) },
    400,
    'envVars',
  ],
  [{ mcp: 'x' }, 400, 'mcp'],
  [{ mcp: { a: 'x'.repeat(65_536) } }, 400, 'mcp'],
  [{ iam: { tokens: { a: { audience: '', tokenType: 'JWT-SVID' } } } }, 400, 'iam.tokens["a"].audience'],
  [{ iam: { tokens: { a: { audience: 'x', tokenType: 'JWT' } } } }, 400, 'iam.tokens["a"].tokenType'],
  [{ iam: { tokens: { '': { audience: 'x', tokenType: 'JWT-SVID' } } } }, 400, 'iam.tokens'],
  [{ iam: { tokens: { a: { audience: 'x', tokenType: 'JWT-SVID' } } } }, 400, 'iam'],
  [
    { iam: { tokens: Object.fromEntries([1, 2, 3, 4, 5, 6].map(i => [i, { audience: 'x', tokenType: 'JWT-SVID' }])) } },
    400,
    'iam.tokens',
  ],
  [{ volumeMounts: [{ name: 'v' }] }, 400, 'volumeMounts[0].path'],
  [{ volumeMounts: [{ name: 'v', path: 'data' }] }, 400, 'volumeMounts[0].path'],
  [{ volumeMounts: [{ name: 'v', path: '/a/../b' }] }, 400, 'volumeMounts[0].path'],
  [{ volumeMounts: [{ name: 'v', path: '/a//b' }] }, 400, 'volumeMounts[0].path'],
  [{ volumeMounts: [{ name: 'v', path: '/a/' }] }, 400, 'volumeMounts[0].path'],
  [
    {
      volumeMounts: [
        { name: 'v', path: '/a' },
        { name: 'w', path: '/a' },
      ],
    },
    400,
    'volumeMounts[1].path',
  ],
  [
    {
      volumeMounts: [
        { name: '', path: '' },
        { name: 'w', path: 'x' },
      ],
    },
    400,
    'volumeMounts[1].path',
  ],
  [{ volumeMounts: [{ name: 'v', path: '/data' }] }, 400, 'volumeMounts'],
  [{ network: [] }, 400, 'network'],
  [{ network: { denyOut: 'all' } }, 400, 'network.denyOut'],
  [{ network: { denyOut: ['example.com'] } }, 400, 'network.denyOut[0]'],
  [{ network: { denyOut: ['0.0.0.0'] } }, 400, 'network.denyOut[0]'],
  [{ network: { denyOut: ['::'] } }, 400, 'network.denyOut[0]'],
  [{ network: { denyOut: ['1.2.3.4/33'] } }, 400, 'network.denyOut[0]'],
  [{ network: { denyOut: ['1.2.3'] } }, 400, 'network.denyOut[0]'],
  [{ network: { denyOut: ['fe80::1%eth0'] } }, 400, 'network.denyOut[0]'],
  [{ network: { denyOut: ['10.0.0.0/8'] } }, 400, 'network.denyOut'],
  [{ network: { allowOut: ['1.1.1.1'] } }, 400, 'network.allowOut'],
  [{ network: { allowOut: ['example.com'] } }, 400, 'network.allowOut'],
  [{ network: { allowOut: ['exa mple.com'] } }, 400, 'network.allowOut[0]'],
  [{ network: { allowOut: ['*.*.com'] } }, 400, 'network.allowOut[0]'],
  [{ network: { allowOut: ['1.2.3.4/40'] } }, 400, 'network.allowOut[0]'],
  [{ network: { allowOut: ['http://example.com'] } }, 400, 'network.allowOut[0]'],
  [{ network: { allowOut: [''] } }, 400, 'network.allowOut[0]'],
  [{ network: { allowOut: Array.from({ length: 5000 }, () => '1.1.1.1') } }, 400, 'network.allowOut'],
  [{ network: { egressProxy: {} } }, 400, 'network.egressProxy.address'],
  [{ network: { egressProxy: { address: 'proxy' } } }, 400, 'network.egressProxy.address'],
  [{ network: { egressProxy: { address: 'proxy:0' } } }, 400, 'network.egressProxy.address'],
  [{ network: { egressProxy: { address: 'proxy:65536' } } }, 400, 'network.egressProxy.address'],
  [{ network: { egressProxy: { address: ':1080' } } }, 400, 'network.egressProxy.address'],
  [{ network: { egressProxy: { address: 'proxy:1080', password: 'p' } } }, 400, 'network.egressProxy.password'],
  [{ network: { egressProxy: { address: 'proxy:1080', username: '' } } }, 400, 'network.egressProxy.username'],
  [
    { network: { egressProxy: { address: 'proxy:1080', username: 'x'.repeat(256) } } },
    400,
    'network.egressProxy.username',
  ],
  [{ network: { egressProxy: { address: 'proxy.example.com:1080' } } }, 403, 'egressProxy'],
  [{ network: { rules: { 'a b': [] } } }, 400, 'network.rules'],
  [{ network: { rules: { '*': [] } } }, 400, 'network.rules'],
  [{ network: { rules: { '': [] } } }, 400, 'network.rules'],
  [{ network: { rules: { [`${'a'.repeat(60)}.${'b'.repeat(60)}.example.com`]: [] } } }, 400, 'network.rules'],
  [{ network: { rules: { 'a.com': [{}, {}] } } }, 400, 'network.rules["a.com"]'],
  [
    { network: { rules: Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`a${i}.com`, []])) } },
    400,
    'network.rules',
  ],
  [{ network: { rules: { 'a.com': [{ transform: { headers: { 'bad name': 'x' } } }] } } }, 400, 'bad name'],
  [{ network: { rules: { 'a.com': [{ transform: { headers: { X: 'a\r\nb' } } }] } } }, 400, 'headers["X"]'],
  [{ network: { rules: { 'a.com': [{ transform: { headers: { X: 'v'.repeat(2049) } } }] } } }, 400, 'headers["X"]'],
  [{ network: { rules: { 'a.com': [{ transform: { headers: { X: 'v' } } }] } } }, 400, 'network.rules'],
  [{ network: { maskRequestHost: '' } }, 400, 'network.maskRequestHost'],
  [{ network: { maskRequestHost: 'a b' } }, 400, 'network.maskRequestHost'],
  [{ network: { maskRequestHost: 'bücher.example' } }, 400, 'network.maskRequestHost'],
  [{ network: { maskRequestHost: 'host:99999' } }, 400, 'network.maskRequestHost'],
  [{ network: { maskRequestHost: 'http://host' } }, 400, 'network.maskRequestHost'],
  [{ network: { maskRequestHost: 'a:1:2' } }, 400, 'network.maskRequestHost'],
  [{ network: { httpsPorts: [0] } }, 400, 'network.httpsPorts[0]'],
  [{ network: { httpsPorts: [65536] } }, 400, 'network.httpsPorts[0]'],
  [{ network: { httpsPorts: ['443'] } }, 400, 'network.httpsPorts[0]'],
  [{ network: { httpsPorts: [49983] } }, 400, 'network.httpsPorts'],
];

onEachDatabase(database => {
  test('a create that is refused says why and leaves nothing', async () => {
    await using platform = await Platform.start({ database });
    expect(createRefusals.length).toBeGreaterThan(80);
    platform.node.memory = { kept: false, reason: 'no checkpoints' };
    for (const [body, status, names] of createRefusals) {
      for (const path of ['/sandboxes', '/v2/sandboxes']) {
        const answer = await platform.call('POST', path, { templateID: 'base', ...body });
        expect({
          path,
          body: JSON.stringify(body).slice(0, 200),
          answer: answer.body,
          status: answer.status,
        }).toMatchObject({ status, answer: { code: status, message: expect.stringContaining(names) } });
      }
    }
    expect(platform.node.created).toEqual([]);
    expect(await platform.store.db.selectFrom('sandboxes').select('sandbox_id').execute()).toEqual([]);
    expect((await platform.call('GET', '/v2/sandboxes')).headers.get('x-total-running')).toBe('0');
  });

  test('what is unusual but allowed is taken as it is', async () => {
    await using platform = await Platform.start({ database });
    const metadata = {
      __proto__x: 'y',
      'a=b&c': 'ü % & =',
      constructor: 'c',
      '\u0000': '\u0000\ud800',
      ['long'.repeat(500)]: 'x',
    };
    Object.defineProperty(metadata, '__proto__', { value: 'data', enumerable: true });
    const accepted: Array<Record<string, unknown>> = [
      { metadata },
      { metadata: {} },
      { metadata: pairs(256) },
      { timeout: 24 * 3600 },
      {
        timeout: null,
        metadata: null,
        envVars: null,
        network: null,
        mcp: null,
        secure: null,
        autoPause: null,
        volumeMounts: null,
      },
      { unknown: 1, network: { unknown: [1], allowOut: null, egressProxy: null } },
      {
        autoPause: false,
        autoPauseMemory: true,
        autoResume: { enabled: false },
        volumeMounts: [],
        iam: { tokens: {} },
      },
      { network: { denyOut: ['0.0.0.0/0', '::/0'], allowOut: [], rules: {} } },
      { network: { maskRequestHost: 'localhost:${PORT}', httpsPorts: [3000, 8443] } },
      { network: { maskRequestHost: 'app.example.com' } },
      { mcp: { any: [{ thing: null }] } },
      { templateID: ' BASE:default ' },
      { envVars: { E2B_SANDBOX: 'no', E2B_SANDBOX_ID: 'mine', A: 'x'.repeat(100_000) } },
    ];
    for (const body of accepted) {
      const { sandboxID } = await platform.createSandbox(body);
      const { body: detail } = await platform.call('GET', `/sandboxes/${sandboxID}`);
      if (body['metadata']) expect((detail as { metadata: unknown }).metadata).toEqual(body['metadata']);
      else expect(detail).not.toHaveProperty('metadata');
    }
    expect(platform.node.created.at(-1)?.envVars).toMatchObject({
      E2B_SANDBOX: 'true',
      E2B_SANDBOX_ID: platform.node.created.at(-1)?.sandboxId ?? '',
    });
    expect(platform.node.created.map(({ network }) => network.denyOut)).toEqual(
      accepted.map((_, index) => (index === 7 ? ['0.0.0.0/0', '::/0'] : undefined)),
    );
  });

  test('malformed IDs are 400, well-formed ones of nothing 404', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    const routes: Array<[string, string, unknown?]> = [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/timeout', { timeout: 5 }],
      ['POST', '/refreshes', {}],
      ['POST', '/connect', { timeout: 5 }],
    ];
    for (const [method, suffix, body] of routes) {
      for (const id of ['A', 'a_b', 'a.b', 'a-b-c', '-a', '%20', 'a%2Fb', `${sandboxID}%00`, 'ü']) {
        const answer = await platform.call(method, `/sandboxes/${id}${suffix}`, body);
        expect({ method, id, suffix, ...answer }).toMatchObject({
          status: 400,
          body: { code: 400, message: expect.stringContaining('sandboxID') },
        });
      }
      for (const id of ['inothing', 'a', 'x'.repeat(500), 'inothing-6532622b']) {
        const answer = await platform.call(method, `/sandboxes/${id}${suffix}`, body);
        expect({ method, id, suffix, ...answer }).toMatchObject({ status: 404, body: { code: 404 } });
      }
    }
    expect((await platform.call('GET', `/sandboxes/${sandboxID}-6532622b`)).status).toBe(200);
  });

  test('bad queries of the list are 400 and name the parameter', async () => {
    await using platform = await Platform.start({ database });
    const queries: Array<[query: string, names: string]> = [
      ['limit=0', 'limit'],
      ['limit=101', 'limit'],
      ['limit=-1', 'limit'],
      ['limit=x', 'limit'],
      ['limit=1.5', 'limit'],
      ['limit=', 'limit'],
      ['state=gone', 'state'],
      ['state=running,', 'state'],
      ['order=up', 'order'],
      ['startedAfter=yesterday', 'startedAfter'],
      ['startedAfter=2026-13-01T00:00:00Z', 'startedAfter'],
      ['template=a:b', 'template'],
      ['template=a%20b', 'template'],
      ['nextToken=zzz', 'nextToken'],
      [`nextToken=${Buffer.from('2026-01-01T00:00:00.000000Z__abc__asc').toString('base64url')}`, 'nextToken'],
      [`nextToken=${Buffer.from('2026-01-01T00:00:00.000000Z__a%b').toString('base64url')}`, 'nextToken'],
      ['metadata=a', 'metadata'],
      ['metadata=a%3Db%3Dc', 'metadata'],
      ['metadata=%3Db', 'metadata'],
      ['metadata=a%3Db%26', 'metadata'],
    ];
    for (const [query, names] of queries) {
      const answer = await platform.call('GET', `/v2/sandboxes?${query}`);
      expect({ query, ...answer }).toMatchObject({
        status: 400,
        body: { code: 400, message: expect.stringContaining(names) },
      });
    }
    for (const query of [
      'limit=100',
      'state=',
      'state=running,paused',
      'unknown=1',
      'template=nothing',
      'metadata=',
      '%zz=1',
    ]) {
      expect({ query, ...(await platform.call('GET', `/v2/sandboxes?${query}`)) }).toMatchObject({
        status: 200,
        body: [],
      });
    }
  });

  test('bad timeouts are 400 and change nothing', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    const before = (await platform.call('GET', `/sandboxes/${sandboxID}`)).body;
    const bodies: Array<[path: string, body: unknown]> = [
      ['/timeout', undefined],
      ['/timeout', {}],
      ['/timeout', { timeout: null }],
      ['/timeout', { timeout: -1 }],
      ['/timeout', { timeout: '5' }],
      ['/timeout', { timeout: 24 * 3600 + 1 }],
      ['/refreshes', { duration: -1 }],
      ['/refreshes', { duration: 3601 }],
      ['/refreshes', { duration: 'x' }],
      ['/connect', undefined],
      ['/connect', {}],
      ['/connect', { timeout: -1 }],
      ['/connect', { timeout: 24 * 3600 + 1 }],
    ];
    for (const [suffix, body] of bodies) {
      const answer = await platform.call('POST', `/sandboxes/${sandboxID}${suffix}`, body);
      expect({ suffix, sent: body, ...answer }).toMatchObject({ status: 400, body: { code: 400 } });
    }
    expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).body).toEqual(before);
  });
});
