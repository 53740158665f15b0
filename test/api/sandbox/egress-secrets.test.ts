import { expect, test } from 'bun:test';
import { AtollError } from '../../../src/base/error.ts';
import { findSandboxOfAnyTeam } from '../../../src/api/sandbox/store/read.ts';
import { settleMove } from '../../../src/api/sandbox/workflows/move/settle.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform, until } from '../platform.ts';

const features = { egressAddresses: true, egressDomains: true, egressProxy: true, headerRules: true };
const rulesOf = (value: string, name = 'Authorization') => ({
  'api.example.com': [{ transform: { headers: { [name]: value } } }],
});

onEachDatabase(database => {
  const start = () => Platform.start({ database, features });
  const headersAt = (platform: Platform, sandboxID: string) =>
    platform.node.networks.get(sandboxID)?.headerRules?.['api.example.com'];

  test('a secret in a header rule gets to the node alone, and its changes hold in sandboxes that run', async () => {
    await using platform = await start();
    await platform.call('POST', '/secrets', { name: 'api-key', value: 'first-value' });
    const rules = rulesOf('Bearer ${e2b.secrets.api-key}');
    const created = await platform.call('POST', '/v2/sandboxes', {
      templateID: 'base',
      network: { rules, egressProxy: { address: 'proxy.example.com:1080', username: 'u', password: 'proxy-password' } },
    });
    const { sandboxID } = created.body as { sandboxID: string };
    const other = await platform.createSandbox({ network: { rules: rulesOf('plain-header-value') } });
    expect(headersAt(platform, sandboxID)).toEqual({ Authorization: 'Bearer first-value' });
    expect(headersAt(platform, other.sandboxID)).toEqual({ Authorization: 'plain-header-value' });
    expect(platform.node.networks.get(sandboxID)?.egressProxy?.password).toBe('proxy-password');

    const told = platform.node.networks.get(other.sandboxID);
    expect((await platform.call('POST', '/secrets/API-KEY', { value: 'second-value' })).status).toBe(200);
    // Teams whose rules name no such secret are told nothing.
    expect(platform.node.networks.get(other.sandboxID)).toBe(told as NonNullable<typeof told>);
    expect(headersAt(platform, sandboxID)).toEqual({ Authorization: 'Bearer second-value' });
    const detail = await platform.call('GET', `/sandboxes/${sandboxID}`);
    expect(detail.body).toMatchObject({
      network: { rules, egressProxy: { address: 'proxy.example.com:1080', username: 'u' } },
    });

    await platform.call('POST', `/sandboxes/${sandboxID}/pause`);
    await platform.call('POST', '/secrets/api-key', { value: 'third-value' });
    await platform.call('POST', `/sandboxes/${sandboxID}/connect`, { timeout: 60 });
    expect(platform.node.resumed.at(-1)?.network.headerRules?.['api.example.com']).toEqual({
      Authorization: 'Bearer third-value',
    });

    const tables = ['sandboxes', 'secrets', 'audit_log'] as const;
    const stored = JSON.stringify(
      await Promise.all(tables.map(table => platform.store.db.selectFrom(table).selectAll().execute())),
    );
    for (const value of ['first-value', 'second-value', 'third-value', 'plain-header-value', 'proxy-password']) {
      expect(stored).not.toContain(value);
      expect(JSON.stringify([created.body, value === 'plain-header-value' ? null : detail.body])).not.toContain(value);
    }
    // A request goes without a header rather than with a placeholder in it.
    expect((await platform.call('PUT', `/sandboxes/${sandboxID}/network`, { rules })).status).toBe(204);
    expect((await platform.call('DELETE', '/secrets/api-key')).status).toBe(204);
    expect(headersAt(platform, sandboxID)).toEqual({});
    expect(headersAt(platform, other.sandboxID)).toEqual({ Authorization: 'plain-header-value' });
  });

  test('a secret that is changed while a sandbox starts or resumes holds in it all the same', async () => {
    await using platform = await start();
    await platform.call('POST', '/secrets', { name: 'k', value: 'before-start' });
    const change = (call: string, value: string) => {
      platform.node.after = async ended => {
        if (ended !== call) return;
        platform.node.after = async () => {};
        await platform.call('POST', '/secrets/k', { value });
      };
    };
    change('create', 'while-starting');
    const { sandboxID } = await platform.createSandbox({ network: { rules: rulesOf('${e2b.secrets.k}') } });
    expect(headersAt(platform, sandboxID)).toEqual({ Authorization: 'while-starting' });
    await platform.call('POST', `/sandboxes/${sandboxID}/pause`);
    change('resume', 'while-resuming');
    await platform.call('POST', `/sandboxes/${sandboxID}/connect`, { timeout: 60 });
    expect(headersAt(platform, sandboxID)).toEqual({ Authorization: 'while-resuming' });
    change('snapshot', 'while-snapshotting');
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/snapshots`, {})).status).toBe(201);
    expect(headersAt(platform, sandboxID)).toEqual({ Authorization: 'while-snapshotting' });
  });

  test('a resume is answered, also where a secret that changed meanwhile can not be told to the node', async () => {
    await using platform = await start();
    await platform.call('POST', '/secrets', { name: 'k', value: 'at-first' });
    const { sandboxID } = await platform.createSandbox({ network: { rules: rulesOf('${e2b.secrets.k}') } });
    await platform.call('POST', `/sandboxes/${sandboxID}/pause`);
    platform.node.after = async call => {
      if (call === 'resume') await platform.call('POST', '/secrets/k', { value: 'while-resuming' });
    };
    platform.node.before = async call => {
      if (call === 'updateNetwork') throw new Error('the machine fails');
    };
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/connect`, { timeout: 60 })).status).toBe(201);
    const detail = (await platform.call('GET', `/sandboxes/${sandboxID}`)).body;
    expect(detail).toMatchObject({ state: 'running' });
    expect(platform.logged.join('')).toContain('may hold a secret as it was');
  });

  test('what changes while a pause or a move fails holds in the sandbox that runs on', async () => {
    await using platform = await start();
    await platform.call('POST', '/secrets', { name: 'k', value: 'at-first' });
    const { sandboxID } = await platform.createSandbox({ network: { rules: rulesOf('${e2b.secrets.k}') } });
    const { db } = platform.store;
    platform.node.before = async call => {
      if (call !== 'pause') return;
      platform.node.before = async () => {};
      await platform.call('POST', '/secrets/k', { value: 'while-pausing' });
      // As for an update that was recorded right before the pause began but did not reach the node.
      await db.updateTable('sandboxes').set({ allow_internet_access: 0 }).execute();
      throw new Error('the machine fails');
    };
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`)).status).toBe(500);
    expect(headersAt(platform, sandboxID)).toEqual({ Authorization: 'while-pausing' });
    const detail = (await platform.call('GET', `/sandboxes/${sandboxID}`)).body;
    expect(detail).toMatchObject({ state: 'running', allowInternetAccess: false });
    expect(platform.node.networks.get(sandboxID)?.internetAccess).toBe(false);

    const { parts } = platform.api;
    await db.updateTable('sandboxes').set({ state: 'moving', replica_id: parts.busy.replicaId }).execute();
    const moving = await findSandboxOfAnyTeam(db, sandboxID);
    await platform.call('POST', '/secrets/k', { value: 'while-moving' });
    if (moving) await settleMove(parts, moving);
    expect(headersAt(platform, sandboxID)).toEqual({ Authorization: 'while-moving' });
  });

  test('a sandbox whose pause has failed runs on where the disk is full', async () => {
    await using platform = await start();
    const { sandboxID } = await platform.createSandbox({ network: { rules: rulesOf('kept') } });
    platform.node.before = async call => {
      if (call === 'pause' || call === 'updateNetwork') throw new AtollError('no_space', 'the disk is full');
    };
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`)).status).toBe(507);
    const detail = (await platform.call('GET', `/sandboxes/${sandboxID}`)).body;
    expect(detail).toMatchObject({ state: 'running' });
    expect(detail).not.toHaveProperty('transition');
  });

  test('a network that can’t be told to what runs on is told again until it is', async () => {
    await using platform = await start();
    const { sandboxID } = await platform.createSandbox({ network: { rules: rulesOf('kept') } });
    platform.node.networks.clear();
    let failures = 0;
    platform.node.before = async call => {
      if (call === 'pause') throw new Error('the machine fails');
      if (call === 'updateNetwork' && ++failures < 3) throw new Error('the machine fails');
    };
    expect((await platform.call('POST', `/sandboxes/${sandboxID}/pause`)).status).toBe(500);
    const state = async () =>
      ((await platform.call('GET', `/sandboxes/${sandboxID}`)).body as { transition?: string }).transition;
    expect(await state()).toBe('pausing');
    await until(async () => (await state()) === undefined);
    expect(headersAt(platform, sandboxID)).toEqual({ Authorization: 'kept' });
  });

  test('what names no secret of the team, no token, or is malformed is refused, and changes nothing', async () => {
    await using platform = await start();
    await platform.call('POST', '/secrets', { name: 'lines', value: 'two\r\nlines: x' });
    await platform.call('POST', '/secrets', { name: 'long', value: 'x'.repeat(20_000) });
    const { sandboxID } = await platform.createSandbox({ network: { rules: rulesOf('kept') } });
    const refusals = [
      ['${e2b.secrets.unknown}', 'no secret "unknown"'],
      ['${e2b.secrets.lines}', 'secret "lines" can\'t be in a header'],
      ['${e2b.secrets.long}', 'secret "long" can\'t be in a header'],
      ['${e2b.secrets.}', 'malformed placeholder'],
      ['${e2b.other.x}', 'malformed placeholder'],
      ['${e2b.identity.tokens.aws}', 'iam.tokens has no token "aws"'],
    ];
    for (const [value = '', why = ''] of refusals) {
      for (const [method, path, body] of [
        ['POST', '/v2/sandboxes', { templateID: 'base', network: { rules: rulesOf(value) } }],
        ['PUT', `/sandboxes/${sandboxID}/network`, { rules: rulesOf(value) }],
      ] as const) {
        expect(await platform.call(method, path, body)).toMatchObject({
          status: 400,
          body: { message: expect.stringContaining(why) },
        });
      }
    }
    expect(headersAt(platform, sandboxID)).toEqual({ Authorization: 'kept' });
    expect(
      (await platform.call('PUT', `/sandboxes/${sandboxID}/network`, { rules: rulesOf('${HOME} $x ${') })).status,
    ).toBe(204);
  });
});
