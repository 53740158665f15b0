import { expect, test } from 'bun:test';
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
      const seconds = async (command: string) => Number((await lab.run(sandbox, `curl -sS -o /dev/null --max-time 30 -w '%{time_total}' ${command}`)).stdout);
      // 8 MB at 2 MiB/s: 3.8 s, less what the bucket has saved. Unlimited it takes some 10 ms.
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
      // Nobody answers there, but it is the host's resolver that was asked.
      await lab.python(sandbox, "import socket\ntry: socket.gethostbyname('allowed.test')\nexcept OSError: pass");
      expect((await lab.intrusions()).some(intrusion => intrusion.startsWith('datagram for port 53 from 127.0.0.1'))).toBe(true);
      await lab.kill(sandbox);
    }
  });
}, 120_000);

test('where allowed names are opened, requests inside of TLS can name no other host', async () => {
  await within({ egress: { opensAllowedNames: true } }, async lab => {
    const sandbox = await lab.create(names);
    const get = (options: string) => lab.run(sandbox, `curl -sS --max-time 5 ${options}`);
    expect((await get('https://allowed.test/')).stdout).toBe('page of allowed\n');
    expect((await get(`--resolve allowed.test:443:${addresses.other} https://allowed.test/`)).stdout).toBe('page of allowed\n');
    expect((await get('-H "Host: www.allowed.test" https://allowed.test/')).exitCode).not.toBe(0);
    expect((await get('--http2 https://allowed.test/')).stdout).toBe('page of allowed\n'); // and not by HTTP/2
    const hosts = (await lab.visits()).filter(({ service }) => service.startsWith('http')).map(({ service, detail }) => `${service} ${detail}`);
    expect(hosts).toEqual(Array.from({ length: 3 }, () => 'https allowed allowed.test GET /'));
    await lab.kill(sandbox);
  });
}, 120_000);
