import { expect, test } from 'bun:test';
import { onEachDatabase } from '../databases.ts';
import { Platform, until } from '../platform.ts';

const features = { egressAddresses: true, egressDomains: true, egressProxy: true, headerRules: true };

onEachDatabase(database => {
  const detail = async (platform: Platform, sandboxID: string) =>
    (await platform.call('GET', `/sandboxes/${sandboxID}`)).body as {
      network?: Record<string, unknown>;
      allowInternetAccess?: boolean;
    };
  const put = (platform: Platform, sandboxID: string, body: unknown) =>
    platform.call('PUT', `/sandboxes/${sandboxID}/network`, body);

  test('an update replaces what may leave and keeps what may come in', async () => {
    await using platform = await Platform.start({ database, features });
    const { sandboxID } = await platform.createSandbox({
      allow_internet_access: true,
      network: {
        allowPublicTraffic: false,
        maskRequestHost: 'localhost',
        httpsPorts: [8443],
        allowOut: ['1.1.1.1'],
        rules: { 'A.com': [{ transform: { headers: { X: 'y' } } }] },
      },
    });
    expect(platform.node.networks.get(sandboxID)).toEqual({
      internetAccess: true,
      allowOut: ['1.1.1.1'],
      headerRules: { 'a.com': { X: 'y' } },
    });
    expect((await detail(platform, sandboxID)).network?.['rules']).toEqual({
      'a.com': [{ transform: { headers: { X: 'y' } } }],
    });

    const egress = {
      denyOut: ['0.0.0.0/0'],
      allowOut: ['example.com', '8.8.8.8/32'],
      egressProxy: { address: 'proxy.example.com:1080', username: 'u', password: 'p' },
    };
    expect((await put(platform, sandboxID, egress)).status).toBe(204);
    expect(platform.node.networks.get(sandboxID)).toEqual({ internetAccess: true, ...egress });
    expect(await detail(platform, sandboxID)).toMatchObject({
      network: {
        allowPublicTraffic: false,
        maskRequestHost: 'localhost',
        httpsPorts: [8443],
        denyOut: ['0.0.0.0/0'],
        allowOut: ['example.com', '8.8.8.8/32'],
        egressProxy: { address: 'proxy.example.com:1080', username: 'u' },
      },
    });
    expect(await detail(platform, sandboxID)).not.toHaveProperty('allowInternetAccess');
    expect((await detail(platform, sandboxID)).network).not.toHaveProperty('rules');

    expect((await put(platform, sandboxID, { allow_internet_access: false })).status).toBe(204);
    expect(platform.node.networks.get(sandboxID)).toEqual({ internetAccess: false });
    expect(await detail(platform, sandboxID)).toMatchObject({ allowInternetAccess: false });
    expect(platform.api.directory.find(sandboxID)?.ingress).toMatchObject({
      maskRequestHost: 'localhost',
      httpsPorts: [8443],
    });

    const plain = await platform.createSandbox();
    expect((await put(platform, plain.sandboxID, {})).status).toBe(204);
    expect(await detail(platform, plain.sandboxID)).not.toHaveProperty('network');
  });

  test('an update that is refused or fails changes nothing', async () => {
    await using platform = await Platform.start({ database, features: { egressAddresses: true } });
    const { sandboxID } = await platform.createSandbox({ network: { denyOut: ['8.8.8.8'] } });
    const before = [await detail(platform, sandboxID), platform.node.networks.get(sandboxID)];
    const refusals: Array<[body: unknown, status: number, names: string]> = [
      [undefined, 400, 'request body'],
      [{ denyOut: ['example.com'] }, 400, 'denyOut[0]'],
      [{ allowOut: ['example.com'] }, 400, 'allowOut'],
      [{ allowOut: ['example.com'], denyOut: ['0.0.0.0/0'] }, 400, 'allowOut'],
      [{ allowOut: ['a b'] }, 400, 'allowOut[0]'],
      [{ egressProxy: { address: '10.0.0.1:1080' } }, 400, 'egressProxy.address'],
      [{ egressProxy: { address: 'proxy.example.com:1080' } }, 403, 'egressProxy'],
      [{ rules: { 'a.com': [] } }, 400, 'rules'],
      [{ allow_internet_access: 'no' }, 400, 'allow_internet_access'],
    ];
    for (const [body, status, names] of refusals) {
      expect(await put(platform, sandboxID, body)).toMatchObject({
        status,
        body: { code: status, message: expect.stringContaining(names) },
      });
    }
    platform.node.before = async call => {
      if (call === 'updateNetwork') throw new Error('broken');
    };
    expect((await put(platform, sandboxID, { denyOut: ['9.9.9.9'] })).status).toBe(500);
    expect([await detail(platform, sandboxID), platform.node.networks.get(sandboxID)]).toEqual(before);
    expect((await put(platform, 'inothing', {})).status).toBe(404);
    // Its node does it; only the answer is lost.
    platform.node.before = async () => {};
    platform.node.after = async call => {
      if (call !== 'updateNetwork') return;
      platform.node.after = async () => {};
      throw new Error('broken');
    };
    expect((await put(platform, sandboxID, { denyOut: ['9.9.9.9'] })).status).toBe(500);
    expect([await detail(platform, sandboxID), platform.node.networks.get(sandboxID)]).toEqual(before);
  });

  test('of updates at the same time, the one that is told is the one that holds', async () => {
    await using platform = await Platform.start({ database, features });
    const { sandboxID } = await platform.createSandbox();
    platform.node.before = async () => Bun.sleep(Math.random() * 10);
    platform.node.after = async () => Bun.sleep(Math.random() * 10);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => put(platform, sandboxID, { denyOut: [`9.9.9.${i}`] })),
    );
    for (const { status } of answers) expect(status).toBe(204);
    const told = (await detail(platform, sandboxID)).network?.['denyOut'] as string[];
    await until(() => platform.node.networks.get(sandboxID)?.denyOut?.[0] === told[0]);
  });

  test('an update that a crash cut short holds after the restart', async () => {
    await using platform = await Platform.start({ database, features });
    const { sandboxID } = await platform.createSandbox();
    await platform.store.db.updateTable('sandboxes').set({ network_json: '{"denyOut":["9.9.9.9"]}' }).execute();
    await platform.restart();
    expect(platform.node.networks.get(sandboxID)).toEqual({ internetAccess: true, denyOut: ['9.9.9.9'] });
  });
});
