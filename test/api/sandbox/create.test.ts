import { expect, test } from 'bun:test';
import { AtollError } from '../../../src/base/error.ts';
import { deriveToken } from '../../../src/base/crypto/secret.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform, until } from '../platform.ts';
import { layer } from '../support/layer.ts';

onEachDatabase(database => {
  const rows = (platform: Platform) =>
    platform.store.db.selectFrom('sandboxes').select(['sandbox_id', 'state']).execute();

  test('the node gets what the template and the caller say', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID, templateID, envdAccessToken } = await platform.createSandbox({
      envVars: { A: 'b' },
      allow_internet_access: false,
    });
    expect(platform.node.created).toHaveLength(1);
    expect(platform.node.created[0]).toMatchObject({
      sandboxId: sandboxID,
      image: { templateId: templateID, layers: [layer('00')], defaultUser: 'user', defaultWorkdir: '', buildEnv: {} },
      resources: { cpuCount: 2, memoryMiB: 1024, diskMiB: 5120 },
      network: { internetAccess: false },
      envVars: { A: 'b', E2B_SANDBOX: 'true', E2B_SANDBOX_ID: sandboxID, E2B_TEMPLATE_ID: templateID },
      accessToken: envdAccessToken,
    });
    expect(envdAccessToken).toBe(deriveToken(new Uint8Array(32).fill(7), sandboxID));
  });

  test('what was asked for is told again, and secrets are not', async () => {
    await using platform = await Platform.start({
      database,
      features: { egressAddresses: true, egressDomains: true, egressProxy: true, headerRules: true },
    });
    const network = {
      allowPublicTraffic: false,
      allowOut: ['1.1.1.1', '10.1.0.0/16', 'example.com', '*.example.com', '2606:4700::/32'],
      denyOut: ['0.0.0.0/0'],
      egressProxy: { address: 'proxy.example.com:1080', username: 'u', password: 'hidden' },
      maskRequestHost: 'localhost:${PORT}',
      rules: { '*.example.com': [{ transform: { headers: { Authorization: 'Bearer x' } } }] },
      httpsPorts: [3000],
    };
    const created = await platform.createSandbox({
      network,
      autoPause: true,
      autoResume: { enabled: true },
      allow_internet_access: true,
    });
    expect(created).toMatchObject({
      trafficAccessToken: deriveToken(new Uint8Array(32).fill(7), `sandbox-traffic-${created.sandboxID}`),
    });
    const { body } = await platform.call('GET', `/sandboxes/${created.sandboxID}`);
    expect(body).toMatchObject({
      allowInternetAccess: true,
      envdAccessToken: created['envdAccessToken'],
      network: { ...network, egressProxy: { address: 'proxy.example.com:1080', username: 'u' } },
      lifecycle: { autoResume: true, onTimeout: 'pause' },
    });
    expect(JSON.stringify(body)).not.toContain('hidden');
    const route = platform.api.directory.find(created.sandboxID);
    expect(route).toMatchObject({
      state: 'running',
      ingress: {
        accessToken: created['envdAccessToken'],
        trafficAccessToken: created['trafficAccessToken'],
        maskRequestHost: 'localhost:${PORT}',
        httpsPorts: [3000],
        autoResume: true,
      },
    });

    const plain = await platform.createSandbox();
    expect(plain).not.toHaveProperty('trafficAccessToken');
    const detail = (await platform.call('GET', `/sandboxes/${plain.sandboxID}`)).body;
    for (const member of ['network', 'allowInternetAccess', 'metadata']) expect(detail).not.toHaveProperty(member);
  });

  test('an installation can refuse sandboxes without a token', async () => {
    await using platform = await Platform.start({ database, requireSecure: true });
    for (const body of [{ templateID: 'base' }, { templateID: 'base', secure: false }]) {
      expect(await platform.call('POST', '/sandboxes', body)).toMatchObject({
        status: 400,
        body: { message: expect.stringContaining('secure: must be true') },
      });
    }
    expect(await rows(platform)).toEqual([]);
    expect((await platform.call('POST', '/sandboxes', { templateID: 'base', secure: true })).status).toBe(201);
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'base' })).status).toBe(201);
  });

  test('private ingress needs a secured sandbox on v1', async () => {
    await using platform = await Platform.start({ database });
    const body = { templateID: 'base', network: { allowPublicTraffic: false } };
    expect(await platform.call('POST', '/sandboxes', body)).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('allowPublicTraffic') },
    });
    expect((await platform.call('POST', '/sandboxes', { ...body, secure: true })).body).toHaveProperty(
      'trafficAccessToken',
    );
  });

  test('a team never gets more sandboxes at once than its limit, however many it asks for at once', async () => {
    await using platform = await Platform.start({ database, limits: { concurrentSandboxes: 5 } });
    platform.node.before = async () => Bun.sleep(20);
    const answers = await Promise.all(
      Array.from({ length: 15 }, () => platform.call('POST', '/v2/sandboxes', { templateID: 'base' })),
    );
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(5);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(10);
    for (const { body, headers } of refused) {
      expect(body).toMatchObject({ code: 429, message: expect.stringContaining('5') });
      expect(headers.has('retry-after')).toBe(false);
    }
    expect(platform.node.executions()).toHaveLength(5);
    expect(await rows(platform)).toHaveLength(5);
    // Another team has its own limit, and an end makes room.
    const other = await platform.otherTeam('small', { concurrentSandboxes: 1 });
    const theirs = () => platform.call('POST', '/v2/sandboxes', { templateID: 'base' }, { 'x-api-key': other.key });
    expect([(await theirs()).status, (await theirs()).status]).toEqual([201, 429]);
    const [first] = answers.filter(({ status }) => status === 201);
    await platform.call('DELETE', `/sandboxes/${(first!.body as { sandboxID: string }).sandboxID}`);
    expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'base' })).status).toBe(201);
  });

  test('a template that is larger than a team may have is refused by name', async () => {
    await using platform = await Platform.start({ database });
    for (const [limit, value] of [
      ['cpuCount', 1],
      ['memoryMiB', 512],
      ['diskMiB', 1024],
    ] as const) {
      const { key } = await platform.otherTeam(`small-${value}`, { [limit]: value });
      const refused = await platform.call('POST', '/v2/sandboxes', { templateID: 'base' }, { 'x-api-key': key });
      expect({ limit, ...refused }).toMatchObject({
        limit,
        status: 400,
        body: { message: expect.stringContaining(`up to ${value}`) },
      });
    }
    expect(platform.node.created).toEqual([]);
  });

  test("what the node can't do is answered by its kind and leaves nothing", async () => {
    await using platform = await Platform.start({ database });
    const failures: Array<[error: unknown, status: number, detail: string]> = [
      [new AtollError('unavailable', 'no slot'), 503, 'sandbox_capacity_unavailable'],
      [new AtollError('no_space', 'disk full'), 503, 'sandbox_capacity_unavailable'],
      [new AtollError('not_found', 'layer missing'), 500, 'sandbox_create_failed'],
      [new AtollError('internal', 'secret path /x'), 500, 'sandbox_create_failed'],
      [new Error('secret path /x'), 500, 'sandbox_create_failed'],
    ];
    for (const [error, status, detail] of failures) {
      for (const moment of ['before', 'after'] as const) {
        platform.node[moment] = async call => {
          if (call === 'create') throw error;
        };
        const answer = await platform.call('POST', '/v2/sandboxes', { templateID: 'base' });
        expect(answer).toMatchObject({ status, body: { code: status, error_code: detail } });
        expect(JSON.stringify(answer.body)).not.toContain('/x');
        platform.node[moment] = async () => {};
        expect(platform.node.executions()).toEqual([]);
        expect(await rows(platform)).toEqual([]);
      }
    }
  });

  test('a client that goes away while its sandbox starts leaves none', async () => {
    await using platform = await Platform.start({ database });
    let started = false;
    platform.node.after = async (call, _, signal) => {
      if (call !== 'create') return;
      started = true;
      await until(() => signal?.aborted === true);
    };
    const abort = new AbortController();
    const request = fetch('http://api/v2/sandboxes', {
      unix: platform.socketPath,
      method: 'POST',
      headers: { 'x-api-key': platform.key },
      body: JSON.stringify({ templateID: 'base' }),
      signal: abort.signal,
    });
    await until(() => started);
    expect(await rows(platform)).toMatchObject([{ state: 'starting' }]);
    abort.abort();
    await expect(request).rejects.toThrow();
    await until(async () => (await rows(platform)).length === 0);
    expect(platform.node.executions()).toEqual([]);
  });

  test('a sandbox that starts is hidden, and one that ends while it starts is a failed create', async () => {
    await using platform = await Platform.start({ database });
    const seen: unknown[] = [];
    platform.node.after = async (call, target) => {
      if (call !== 'create' || !target) return;
      for (const method of ['GET', 'DELETE'])
        seen.push((await platform.call(method, `/sandboxes/${target.sandboxId}`)).status);
      seen.push((await platform.call('GET', '/v2/sandboxes')).body);
      platform.node.exit(target);
      await until(async () => (await rows(platform)).length === 0);
    };
    expect(await platform.call('POST', '/v2/sandboxes', { templateID: 'base' })).toMatchObject({
      status: 500,
      body: { error_code: 'sandbox_create_failed' },
    });
    expect(seen).toEqual([404, 404, []]);
    expect(platform.api.directory.size).toBe(0);
  });

  test('a kill that is under way hides the sandbox, and one that fails is finished later', async () => {
    await using platform = await Platform.start({ database });
    const { sandboxID } = await platform.createSandbox();
    const seen: unknown[] = [];
    platform.node.before = async call => {
      if (call !== 'kill' || seen.length > 0) return;
      seen.push(platform.api.directory.find(sandboxID));
      for (const method of ['GET', 'DELETE'])
        seen.push((await platform.call(method, `/sandboxes/${sandboxID}`)).status);
      seen.push((await platform.call('POST', `/sandboxes/${sandboxID}/connect`, { timeout: 5 })).status);
      throw new Error('busy');
    };
    expect(await platform.call('DELETE', `/sandboxes/${sandboxID}`)).toMatchObject({
      status: 500,
      body: { code: 500 },
    });
    expect(seen).toEqual([undefined, 404, 404, 409]);
    await until(() => platform.node.executions().length === 0, 15_000);
    await until(async () => (await rows(platform)).length === 0);
  });
});
