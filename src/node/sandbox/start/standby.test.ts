import { afterEach, beforeEach, expect, test } from 'bun:test';
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFairSemaphore } from '../../../base/concurrency/fair-semaphore.ts';
import { controlTokenHeader } from '../../../protocol/agent.ts';
import { slotOf } from '../../layout.ts';
import { connect4 } from '../../native/netns.ts';
import { exchangeDisk, startStandby } from './standby.ts';

let disksFolder: string;
beforeEach(() => (disksFolder = mkdtempSync(join(tmpdir(), 'atoll-standby-'))));
afterEach(() => rmSync(disksFolder, { recursive: true }));

const slot = slotOf(0, 7);
const resources = { cpuCount: 1, memoryMiB: 512, diskMiB: 1024 };

/** What starting standby sandboxes needs; the step in `fails` fails, and a server of the test is their agent. */
async function scene(fails = '') {
  const done: string[] = [];
  const inits: (string | null)[] = [];
  const agent = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0 },
    fetch(request) {
      inits.push(request.headers.get(controlTokenHeader));
      return new Response(null, { status: 204 });
    },
  });
  const own = openSync('/proc/self/ns/net', 'r');
  const act = async (what: string) => {
    done.push(what);
    if (what.split(' ')[0] === fails) throw new Error(`${what} fails`);
  };
  const namespace = {
    targets: ['ipv4'],
    connect: () => connect4(own, '127.0.0.1', agent.port ?? 0),
    closeSocket: closeSync,
    close: () => void done.push('namespace closed'),
  };
  const given: unknown[] = [];
  const driver = {
    name: 'crun',
    async start(_: unknown, options: unknown) {
      given.push(options);
      await act('start');
      return { pid: 123, announced: Promise.resolve() };
    },
  };
  const parts = {
    layout: { disks: disksFolder, mounts: '/mounts' },
    disks: {
      create: (image: string, sizeMiB: number, at: string) =>
        act(`create ${image.slice(disksFolder.length)} ${sizeMiB} ${at}`),
      open: (image: string, at: string) => act(`open ${image} ${at}`),
      close: (at: string) => act(`close ${at}`),
    },
    slotHost: {
      take: async () => slot,
      release: async (released: typeof slot, drivers: unknown[]) =>
        void done.push(`release ${released.name} ${drivers[0] === driver}`),
    },
    processControl: {
      watch: async () => ({ slot, driver, pid: 123, namespace, ended: new Promise(() => {}) }),
      linkUp: () => act('linkUp'),
      release: async () => void done.push('released'),
    },
    starts: createFairSemaphore(1, 0),
  } as unknown as Parameters<typeof startStandby>[0];
  const end = () => {
    closeSync(own);
    void agent.stop(true);
  };
  return { parts, driver: driver as never, done, inits, given, [Symbol.dispose]: end };
}

test('a standby sandbox has processes whose agent answers, and a disk of its own or a given one', async () => {
  for (const disk of [null, '/disks/mine']) {
    using at = await scene();
    const standby = await startStandby(at.parts, { driver: at.driver, resources, disk });
    expect(standby).toMatchObject({ resources, layers: null, processes: { pid: 123 } });
    expect(at.given).toMatchObject([{ controlToken: standby.controlToken, bootId: standby.bootId, resources }]);
    expect(at.inits).toEqual([standby.controlToken]);
    const opened = disk === null ? 'create /s7.img 1024 /mounts/s7' : 'open /disks/mine /mounts/s7';
    expect(at.done.toSorted()).toEqual(['linkUp', opened, 'start'].toSorted());
  }
});

test('a start that fails leaves no way into a network, and no slot', async () => {
  for (const [fails, closes] of [
    ['start', 0],
    ['linkUp', 1],
    ['create', 1],
  ] as const) {
    using at = await scene(fails);
    await expect(startStandby(at.parts, { driver: at.driver, resources, disk: null })).rejects.toThrow(`${fails}`);
    expect([fails, at.done.filter(what => what === 'namespace closed').length]).toEqual([fails, closes]);
    expect(at.done.at(-1)).toBe('release s7 true');
    // The next one may start.
    await expect(startStandby(at.parts, { driver: at.driver, resources, disk: null })).rejects.toThrow(`${fails}`);
  }
});

test('a disk takes the place of a standby sandbox’s own', async () => {
  using at = await scene();
  const standby = await startStandby(at.parts, { driver: at.driver, resources, disk: null });
  at.done.length = 0;
  writeFileSync(join(disksFolder, 's7.img'), '');
  expect(await exchangeDisk(at.parts, standby, '/disks/mine')).toBe(standby);
  expect([at.done, existsSync(join(disksFolder, 's7.img'))]).toEqual([
    ['close /mounts/s7', 'open /disks/mine /mounts/s7'],
    false,
  ]);
});

test('if a disk can’t be exchanged the standby sandbox is released', async () => {
  for (const fails of ['close', 'open', 'none']) {
    using at = await scene(fails);
    const standby = await startStandby(at.parts, { driver: at.driver, resources, disk: null });
    // A new disk is not there.
    if (fails !== 'none') writeFileSync(join(disksFolder, 's7.img'), '');
    await expect(exchangeDisk(at.parts, standby, '/disks/mine')).rejects.toThrow();
    expect([fails, at.done.at(-1)]).toEqual([fails, 'released']);
  }
});
