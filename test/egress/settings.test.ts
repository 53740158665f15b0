import { expect, test } from 'bun:test';
import { platformInsideAddress } from '../../src/node/layout.ts';
import { addresses } from './support/addresses.ts';
import { startLab, type Lab, type LabOptions } from './support/lab.ts';

const names = { internetAccess: false, allowOut: ['allowed.test', '*.wild.test'] };

async function within(options: LabOptions, work: (lab: Lab) => Promise<void>): Promise<void> {
  const lab = await startLab(options);
  try {
    await work(lab);
  } finally {
    await lab.dispose();
  }
}

test('a bandwidth limit holds in both directions, past the proxy and through it', async () => {
  const bandwidthBytesPerSecond = 2 << 20;
  await within({ egress: { bandwidthBytesPerSecond } }, async lab => {
    for (const policy of [{ internetAccess: true }, names]) {
      const sandbox = await lab.create(policy);
      await lab.run(sandbox, 'head -c 8000000 /dev/zero > /tmp/body');
      const seconds = async (command: string) =>
        Number((await lab.run(sandbox, `curl -sS -o /dev/null --max-time 30 -w '%{time_total}' ${command}`)).stdout);
      // 8 MB at 2 MiB/s: 3.8 s, less what the bucket has saved. Unlimited it takes about 10 ms.
      expect(await seconds('http://allowed.test/part')).toBeGreaterThan(3);
      expect(await seconds('--data-binary @/tmp/body http://allowed.test/size')).toBeGreaterThan(3);
      const { bytesIn, bytesOut } = await lab.traffic(sandbox);
      expect([bytesIn > 8e6, bytesOut > 8e6]).toEqual([true, true]);
      await lab.kill(sandbox);
    }
  });
}, 120_000);

test('resolvers that only the host reaches are asked by the host', async () => {
  await within({ nameservers: ['127.0.0.1'] }, async lab => {
    for (const policy of [{ internetAccess: true }, names]) {
      const sandbox = await lab.create(policy);
      await lab.python(
        sandbox,
        String.raw`
import socket, struct
question = struct.pack('>6H', 7, 0x100, 1, 0, 0, 0) + b'\x07allowed\x04test\x00' + struct.pack('>2H', 1, 1)
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(question, (open('/etc/resolv.conf').read().split()[1], 53))
`,
      );
      // Nobody answers there, but the host's resolver was asked.
      while (!(await lab.intrusions()).some(intrusion => intrusion.startsWith('datagram for port 53 from 127.0.0.1')))
        await Bun.sleep(20);
      await lab.kill(sandbox);
    }
  });
}, 120_000);

test('where allowed names are opened, requests inside of TLS can name no other host', async () => {
  await within({ egress: { opensAllowedNames: true } }, async lab => {
    const sandbox = await lab.create(names);
    const get = (options: string) => lab.run(sandbox, `curl -sS --max-time 5 ${options}`);
    expect((await get('https://allowed.test/')).stdout).toBe('page of allowed\n');
    expect((await get(`--resolve allowed.test:443:${addresses.other} https://allowed.test/`)).stdout).toBe(
      'page of allowed\n',
    );
    expect((await get('-H "Host: www.allowed.test" https://allowed.test/')).exitCode).not.toBe(0);
    expect((await get('--http2 https://allowed.test/')).stdout).toBe('page of allowed\n'); // and not by HTTP/2
    const hosts = (await lab.visits())
      .filter(({ service }) => service.startsWith('http'))
      .map(({ service, detail }) => `${service} ${detail}`);
    expect(hosts).toEqual(Array.from({ length: 3 }, () => 'https allowed allowed.test GET /'));
    await lab.kill(sandbox);
  });
}, 120_000);

test('sandboxes reach the URLs of sandboxes, as far as their policy goes, and nothing else of the platform', async () => {
  const platform = { domain: 'atoll.test', address: '127.0.0.1', httpPort: 8088 };
  await within({ egress: { platform } }, async lab => {
    const get = async (sandbox: string, url: string, options = '') => {
      const { exitCode, stdout } = await lab.run(sandbox, `curl -sS --max-time 5 ${options} ${url}`);
      return exitCode === 0 ? (JSON.parse(stdout) as Record<string, string>) : undefined;
    };
    const inside = platformInsideAddress(lab.installation);
    const sandbox = await lab.create({
      internetAccess: true,
      headerRules: { '*.atoll.test': { 'X-Added': 'yes', 'X-Forwarded-For': '203.0.113.66' } },
    });
    expect(await get(sandbox, 'http://8080-iabc.atoll.test:8088/x')).toMatchObject({
      host: '8080-iabc.atoll.test:8088',
      path: '/x',
      'x-added': 'yes',
    });
    // From an address of the sandbox's own, not one that the edge counts as this machine's.
    expect(await get(sandbox, 'http://8080-iabc.atoll.test/')).toMatchObject({
      host: '8080-iabc.atoll.test',
      from: expect.stringMatching(/^127\.18\./),
    });
    // The edge may trust a load balancer's word about where a request comes from, but must not trust a sandbox's.
    const claims = [
      'X-Forwarded-For',
      'x-forwarded-proto',
      'X-FORWARDED-HOST',
      'X-Forwarded-Anything',
      'Forwarded',
      'X-Real-IP',
    ];
    const seen = await get(
      sandbox,
      'http://8080-iabc.atoll.test/',
      claims.map(name => `-H '${name}: 203.0.113.66'`).join(' '),
    );
    expect(Object.keys(seen ?? {}).filter(name => /forwarded|real-ip/i.test(name))).toEqual([]);
    expect(await get(sandbox, 'https://8080-iabc.atoll.test/')).toMatchObject({
      host: '8080-iabc.atoll.test',
      'x-added': 'yes',
    });
    for (const name of [
      'api.atoll.test',
      'atoll.test',
      'iabc.atoll.test',
      '8080-iabc.x.atoll.test',
      '8080-iabc.atoll.test.attacker.test',
    ]) {
      for (const scheme of ['http', 'https'])
        expect(
          await get(sandbox, `${scheme}://${name}/`, `-k --connect-to ${name}::8080-iabc.atoll.test:`),
        ).toBeUndefined();
    }
    expect(await get(sandbox, 'http://8080-iabc.atoll.test:7000/')).toBeUndefined();
    await lab.update(sandbox, names);
    expect(await get(sandbox, 'http://8080-iabc.atoll.test/')).toBeUndefined();
    expect(
      await get(sandbox, 'http://8080-iabc.atoll.test/', '--resolve 8080-iabc.atoll.test:80:' + inside),
    ).toBeUndefined();
    await lab.update(sandbox, { ...names, allowOut: ['*.atoll.test'] });
    expect(await get(sandbox, 'https://8080-iabc.atoll.test/')).toMatchObject({ host: '8080-iabc.atoll.test' });
    await lab.update(sandbox, { internetAccess: false });
    expect(
      await get(sandbox, 'http://8080-iabc.atoll.test/', '--resolve 8080-iabc.atoll.test:80:' + inside),
    ).toBeUndefined();
    expect(await lab.intrusions()).toEqual([]);
    await lab.kill(sandbox);
  });
}, 120_000);
