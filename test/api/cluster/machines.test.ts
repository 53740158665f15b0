import { expect, setDefaultTimeout } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureFirstTeam } from '../../../src/api/local/first-accounts.ts';
import { startApi } from '../../../src/api/start.ts';
import type { Db } from '../../../src/api/database/db.ts';
import { openStore } from '../../../src/api/database/database.ts';
import { steadyClock } from '../../../src/base/clock.ts';
import { certifyKey, makeAuthority, newKey } from '../../../src/base/crypto/certificate.ts';
import { sha256Hex } from '../../../src/base/crypto/secret.ts';
import { AtollError } from '../../../src/base/error.ts';
import { joinProof, readJoinToken, rejoinProof } from '../../../src/base/crypto/join-proof.ts';
import { platformVersion } from '../../../src/base/version.ts';
import { silentLog } from '../../../src/base/telemetry/log.ts';
import type { ClusterLinks, ReviewPod } from '../../../src/protocol/cluster.ts';
import { testUnless } from '../../support/skip.ts';
import { call } from '../platform.ts';
import { SharedDatabases, postgresPrograms, withoutPostgres } from '../postgres.ts';

// Joining a cluster through the API: who is admitted, and what they get. Machines at work are in test/cluster.

setDefaultTimeout(180_000);
const programs = postgresPrograms();
const postgresTest = testUnless(withoutPostgres());
const admin = { 'x-admin-token': 'a'.repeat(64) };

/** A machine that is out of reach. */
const cut = { gate: { beat: () => Promise.reject(new Error('cut')) }, node: {}, drop() {}, close() {} };

/** Control, and what it finds where machines are. */
async function withControl(
  work: (send: Send, db: Db) => Promise<void>,
  machine: object = cut,
  reviewPod?: ReviewPod,
): Promise<void> {
  await using cluster = await SharedDatabases.open(programs!);
  await using store = await openStore(await cluster.newStore());
  const folder = mkdtempSync(join(tmpdir(), 'atoll-control-'));
  const socketPath = join(folder, 'api.sock');
  const links = { connect: () => machine } as unknown as ClusterLinks;
  const api = await startApi({
    socketPath,
    store,
    cluster: { links, isolationSeconds: 60, ...(reviewPod && { reviewPod }) },
    seed: new Uint8Array(32).fill(3),
    adminToken: admin['x-admin-token'],
    log: silentLog,
  });
  try {
    await work((method, path, body) => call(socketPath, method, path, body, admin), store.db);
  } finally {
    await api.stop();
    rmSync(folder, { recursive: true });
  }
}

type Send = (method: string, path: string, body?: unknown) => ReturnType<typeof call>;

async function invited(send: Send): Promise<string> {
  const { status, body } = await send('POST', '/admin/cluster/invites');
  expect(status).toBe(201);
  return (body as { token: string }).token;
}

const nodeID = '11111111-2222-4333-8444-555555555555';

/** What a machine that has joined before proves its identity with. */
type Identity = { certificate: string; key: string };

function request(
  token: string,
  change: Partial<Record<'address' | 'nodeID' | 'publicKey', string>> = {},
  known?: Identity,
) {
  const { tokenId, key } = readJoinToken(token);
  const asked = { nodeID, address: '203.0.113.2:3010', publicKey: newKey().publicKey, ...change };
  const said = [tokenId, asked.nodeID, asked.address, asked.publicKey];
  const proof = joinProof(key, 'node', said);
  const before = known && { known: { certificate: known.certificate, proof: rejoinProof(known.key, said) } };
  return { key, body: { tokenID: tokenId, ...asked, proof, ...before } };
}

postgresTest('an invitation lets one machine in, once, and proves who answers', async () => {
  await withControl(async send => {
    const { key, body } = request(await invited(send));
    const joined = await send('POST', '/cluster/join', body);
    expect(joined.status).toBe(201);
    const { certificate, authority, proof } = joined.body as Record<'certificate' | 'authority' | 'proof', string>;
    expect(proof).toBe(joinProof(key, 'control', [body.tokenID, certificate, authority]));
    expect(certificate).toStartWith('-----BEGIN CERTIFICATE-----');
    expect((await send('POST', '/cluster/join', body)).status).toBe(401);
    expect(await send('DELETE', `/admin/nodes/${nodeID}`)).toMatchObject({
      ...{ status: 200, body: { nodeID, lost: { sandboxes: 0, volumes: 0 }, stored: 0 } },
    });
    expect((await send('DELETE', `/admin/nodes/${nodeID}`)).status).toBe(404);
  });
});

postgresTest(
  'a wrong proof, an unknown token and a request that was changed on its way are refused alike',
  async () => {
    await withControl(async send => {
      const token = await invited(send);
      const { body } = request(token);
      const wrong = [
        { ...body, proof: '0'.repeat(64) },
        { ...body, tokenID: '0'.repeat(16) },
        { ...body, address: '203.0.113.9:3010' },
        { ...body, publicKey: newKey().publicKey },
        { ...body, nodeID: '22222222-2222-4333-8444-555555555555' },
      ];
      const answers = await Promise.all(wrong.map(each => send('POST', '/cluster/join', each)));
      expect(answers.map(({ status }) => status)).toEqual(wrong.map(() => 401));
      expect(new Set(answers.map(answer => JSON.stringify(answer.body))).size).toBe(1);
      // None of these has used it up; only a machine that holds the invitation is told what it does not allow.
      for (const change of [{ nodeID: 'node' }, { address: 'nowhere' }, { publicKey: 'none' }])
        expect((await send('POST', '/cluster/join', request(token, change).body)).status).toBe(400);
      expect((await send('POST', '/cluster/join', body)).status).toBe(201);
    });
  },
);

postgresTest('under the ID of a machine nobody joins but that machine, or another when it was forgotten', async () => {
  await withControl(async (send, db) => {
    const join = async (known?: Identity, token?: string, address = '203.0.113.9:3010') => {
      const own = newKey();
      const asked = request(token ?? (await invited(send)), { address, publicKey: own.publicKey }, known);
      const { status, body } = await send('POST', '/cluster/join', asked.body);
      const { certificate = '', message = '' } = body as { certificate?: string; message?: string };
      return { status, message, identity: { certificate, key: own.key } };
    };
    const rows = () => db.selectFrom('cluster_nodes').select(['address', 'certificates_json']).execute();
    const first = await join(undefined, undefined, '203.0.113.2:3010');
    expect(first.status).toBe(201);
    const before = await rows();
    const stranger = { certificate: first.identity.certificate, key: newKey().key };
    const token = await invited(send);
    for (const known of [undefined, stranger]) {
      const taken = await join(known, token);
      expect(taken).toMatchObject({ status: 409, message: expect.stringContaining(`node forget ${nodeID}`) });
    }
    expect(await rows()).toEqual(before);
    // Control talks to it at this address: a machine elsewhere has a copy of its disk.
    const leaseUntil = (us: number | null) => db.updateTable('cluster_nodes').set({ lease_until_us: us }).execute();
    await leaseUntil((Date.now() + 60_000) * 1000);
    expect(await join(first.identity, token)).toMatchObject({
      status: 409,
      message: expect.stringContaining('serves at 203.0.113.2:3010 now'),
    });
    await leaseUntil(null);
    expect(await rows()).toEqual(before);
    // That did not use up the invitation: the machine itself moves to another address with it.
    const moved = await join(first.identity, token);
    expect(moved.status).toBe(201);
    expect((await rows()).map(({ address }) => address)).toEqual(['203.0.113.9:3010']);
    // Its previous certificate is now worthless.
    expect((await join(first.identity)).status).toBe(409);
    expect((await send('DELETE', `/admin/nodes/${nodeID}`)).status).toBe(200);
    expect((await join()).status).toBe(201);
  });
});

postgresTest(
  'a machine that was certified after the backup that the database was restored from joins as itself',
  async () => {
    await withControl(async (send, db) => {
      const own = newKey();
      const body = request(await invited(send), { publicKey: own.publicKey }).body;
      const { certificate } = (await send('POST', '/cluster/join', body)).body as Identity;
      const again = async (known: Identity) =>
        (await send('POST', '/cluster/join', request(await invited(send), {}, known).body)).status;
      // The database as it was an hour before the machine got this certificate, and an hour after.
      const known = async (certificates: string[], movedSeconds: number) =>
        db
          .updateTable('cluster_nodes')
          .set(row => ({
            certificates_json: JSON.stringify(certificates),
            renew_at_us: row('renew_at_us', '+', movedSeconds * 1_000_000),
          }))
          .execute();
      await known(['0'.repeat(64)], 3600);
      expect(await again({ certificate, key: own.key })).toBe(409);
      await known(['0'.repeat(64)], -2 * 3600);
      const others = makeAuthority('another cluster', 1);
      const names = [`${nodeID}.node.atoll.internal`];
      const forged = certifyKey(others, own.publicKey, { names, days: 7, use: 'server' });
      for (const stranger of [
        { certificate: forged, key: own.key },
        { certificate, key: newKey().key },
      ])
        expect(await again(stranger)).toBe(409);
      expect(await again({ certificate, key: own.key })).toBe(201);
    });
  },
);

postgresTest('of two machines that join at once under one ID, one is let in', async () => {
  await withControl(async send => {
    const tokens = [await invited(send), await invited(send)];
    const answers = await Promise.all(tokens.map(token => send('POST', '/cluster/join', request(token).body)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409]);
  });
});

postgresTest('a pod joins at the address of its machine alone, and again as the same machine alone', async () => {
  const reviewPod: ReviewPod = async token => {
    if (token === 'forged') throw new AtollError('unauthenticated', 'refused');
    return { hostAddresses: ['203.0.113.2', 'fd00::2'] };
  };
  await withControl(
    async send => {
      const join = async (token: string, address: string, known?: Identity) => {
        const own = newKey();
        const said = [sha256Hex(token), nodeID, address, own.publicKey];
        const before = known && { known: { certificate: known.certificate, proof: rejoinProof(known.key, said) } };
        const asked = { token, nodeID, address, publicKey: own.publicKey, ...before };
        const { status, body } = await send('POST', '/cluster/join-pod', asked);
        return { status, identity: { certificate: (body as Partial<Identity>).certificate ?? '', key: own.key } };
      };
      expect((await join('forged', '203.0.113.2:3010')).status).toBe(401);
      // Whoever stole the token is elsewhere.
      for (const address of ['203.0.113.9:3010', '203.0.113.2', '203.0.113.2:3010:1', 'localhost:3010'])
        expect((await join('its-own', address)).status).toBe(400);
      const first = await join('its-own', '203.0.113.2:3010');
      expect(first.status).toBe(201);
      expect((await join('its-own', '203.0.113.2:3010')).status).toBe(409);
      const again = await join('its-next', '[fd00::2]:3010', first.identity);
      expect(again.status).toBe(201);
      expect((await join('its-next', '203.0.113.2:3010', first.identity)).status).toBe(409);
    },
    cut,
    reviewPod,
  );
});

postgresTest('no pod joins where control knows of no service account', async () => {
  await withControl(async send => {
    const body = { token: 'any', nodeID, address: '203.0.113.2:3010', publicKey: newKey().publicKey };
    const answer = await send('POST', '/cluster/join-pod', body);
    expect(answer.status).toBe(400);
    expect((answer.body as { message: string }).message).toContain('ATOLL_NODE_SERVICE_ACCOUNT');
  });
});

postgresTest('control processes that start at once on an empty database have one first team', async () => {
  await withControl(async (_, db) => {
    const { clock } = steadyClock();
    const teams = await Promise.all(Array.from({ length: 4 }, () => ensureFirstTeam({ db, clock })));
    expect(new Set(teams.map(({ teamId }) => teamId)).size).toBe(1);
  });
});

/** A machine that answers but has nothing. */
function answering(release: string = platformVersion): object {
  const memory = { kept: false, reason: 'a test' };
  const facts = { cpuFamily: '', cpuModel: '', cpuModelName: '', cpuArchitecture: '' };
  const size = { cpuCount: 2, memoryBytes: 2 ** 32, sandboxCount: 0, sandboxesMax: 10 };
  const info = { nodeId: nodeID, ...size, driver: 'crun', memory, memoryByDriver: {}, machine: facts };
  const answer = { epoch: 'one', nowMs: 1, bootId: 'boot', release, info, isPausing: false };
  const nothing = async () => [];
  const absent = () => Promise.reject(new Error('a test'));
  const lists = { list: nothing, listPaused: nothing, listSetAside: nothing, listSnapshots: nothing };
  const node = { ...lists, info: async () => info, usage: absent, incidents: absent, volumes: { list: nothing } };
  return { gate: { beat: async () => answer }, node, drop() {}, close() {} };
}

postgresTest('a machine that was given up gets work again when it has paused what it had', async () => {
  await withControl(async (send, db) => {
    expect((await send('POST', '/cluster/join', request(await invited(send)).body)).status).toBe(201);
    const status = async () => ((await send('GET', '/nodes')).body as { status: string }[])[0]?.status;
    const ready = async () => {
      while ((await status()) !== 'ready') await Bun.sleep(50);
    };
    await ready();
    await db.updateTable('cluster_nodes').set({ given_up: 1, lease_until_us: 1 }).execute();
    while ((await status()) === 'ready') await Bun.sleep(50);
    await ready();
    const row = await db.selectFrom('cluster_nodes').select(['given_up', 'lease_until_us']).executeTakeFirstOrThrow();
    expect(row.given_up).toBe(0);
    expect(row.lease_until_us).toBeGreaterThan(1);
  }, answering());
});

/** The same major release, this many minor releases away. */
const releaseBeside = (steps: number) =>
  platformVersion.replace(/^(\d+)\.(\d+)/, (_, a, b) => `${a}.${Number(b) + steps}`);

postgresTest(
  'a machine of the release beside works during an upgrade, and one of a later one gets no work',
  async () => {
    // Each waits for beats from its own control.
    await Promise.all(
      [[1, 'ready'] as const, [2, 'connecting'] as const].map(([steps, wanted]) =>
        withControl(
          async send => {
            expect((await send('POST', '/cluster/join', request(await invited(send)).body)).status).toBe(201);
            const shown = async () => ((await send('GET', '/nodes')).body as { status: string; version: string }[])[0];
            while ((await shown())?.version !== releaseBeside(steps) || (await shown())?.status !== wanted)
              await Bun.sleep(50);
          },
          answering(releaseBeside(steps)),
        ),
      ),
    );
  },
);

postgresTest('a machine of another release, architecture or time can not join, and keeps its invitation', async () => {
  await withControl(async send => {
    const { body } = request(await invited(send));
    const own = { release: platformVersion, architecture: 'x86_64', nowMs: Date.now() };
    for (const [change, says] of [
      [{ release: '99.0.0' }, 'machine.release: it is 99.0.0'],
      [{ nowMs: own.nowMs + 3_600_000 }, 'machine.nowMs: the clock of this machine is 36'],
    ] as const) {
      const answer = await send('POST', '/cluster/join', { ...body, machine: { ...own, ...change } });
      expect([answer.status, (answer.body as { message: string }).message]).toEqual([
        400,
        expect.stringContaining(says),
      ]);
    }
    expect((await send('POST', '/cluster/join', { ...body, machine: own })).status).toBe(201);
  });
});
