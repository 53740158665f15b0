import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { DurablePauses } from '../../src/api/blob/rules/pauses.ts';
import { defaultOptions } from '../../src/api/sandbox/record.ts';
import { homeOfVolumes } from '../../src/api/sandbox/rules/create/volume-mounts.ts';
import { createSandbox } from '../../src/api/sandbox/workflows/create/create.ts';
import { volumeToken } from '../../src/api/volume/rules/token.ts';
import { recordVolumeRemoval } from '../../src/api/volume/store/removals.ts';
import { reconcileVolumes } from '../../src/api/volume/reconcilers/removals.ts';
import { findVolume } from '../../src/api/volume/store/volumes.ts';
import { volumeUploadsPerTeamMax } from '../../src/api/volume/rules/uploads.ts';
import { newUuid } from '../../src/base/id.ts';
import { onEachDatabase } from './databases.ts';
import { Platform, adminToken, call } from './platform.ts';

const create = async (platform: Platform, name: string) =>
  (await platform.call('POST', '/volumes', { name })).body as { volumeID: string; name: string; token: string };
const content = (platform: Platform, token: string, method: string, path: string, body?: unknown) =>
  call(platform.socketPath, method, `/volumecontent/${path}`, body, { authorization: `Bearer ${token}` });
const claimsOf = (token: string) =>
  token
    .split('.')
    .slice(0, 2)
    .map(part => JSON.parse(Buffer.from(part, 'base64url').toString()) as Record<string, unknown>);

onEachDatabase(database =>
  describe('volumes', () => {
    let platform: Platform;
    beforeAll(async () => void (platform = await Platform.start({ database, features: { volumes: true } })));
    afterAll(() => platform[Symbol.asyncDispose]());

    test('volumes are made, listed, read and deleted by their team alone', async () => {
      const made = await platform.call('POST', '/volumes', { name: 'My-data_1' });
      expect(made).toMatchObject({ status: 201, body: { name: 'My-data_1' } });
      expect(made.headers.get('cache-control')).toBe('no-store');
      const { volumeID } = made.body as { volumeID: string };
      expect((await platform.call('GET', '/volumes')).body).toEqual([
        { volumeID, name: 'My-data_1', sizeMB: 10_240, sandboxCount: 0 },
      ]);
      expect((await platform.call('GET', '/volumes/use')).body).toEqual({
        volumes: { [volumeID]: { usedBytes: expect.any(Number) } },
      });
      expect(await platform.call('GET', `/volumes/${volumeID}`)).toMatchObject({
        status: 200,
        body: { volumeID, name: 'My-data_1' },
      });
      const other = await platform.otherTeam('blue');
      const asOther = { 'x-api-key': other.key };
      expect((await platform.call('GET', '/volumes', undefined, asOther)).body).toEqual([]);
      expect((await platform.call('GET', '/volumes/use', undefined, asOther)).body).toEqual({ volumes: {} });
      for (const method of ['GET', 'DELETE'])
        expect((await platform.call(method, `/volumes/${volumeID}`, undefined, asOther)).status).toBe(404);
      // Names are a team's own.
      expect((await platform.call('POST', '/volumes', { name: 'My-data_1' }, asOther)).status).toBe(201);
      expect((await platform.call('DELETE', `/volumes/${volumeID}`)).status).toBe(204);
      expect((await platform.call('DELETE', `/volumes/${volumeID}`)).status).toBe(404);
      expect((await platform.call('GET', `/volumes/${newUuid()}`)).status).toBe(404);
      expect((await platform.call('GET', '/volumes/nonsense')).status).toBe(400);
    });

    test('an upload of a team that has its share under way waits for a place', async () => {
      const { volumeID, token } = await create(platform, 'shared');
      const volume = await findVolume(platform.store.db, volumeID);
      const { volumeUploads } = platform.api.parts;
      const { signal } = new AbortController();
      const places = await Promise.all(
        Array.from({ length: volumeUploadsPerTeamMax }, () =>
          volumeUploads.begin(volume?.nodeId ?? '', platform.team.teamId, signal),
        ),
      );
      let isOver = false;
      const upload = content(platform, token, 'PUT', `${volumeID}/file?path=/a`, 'text').finally(() => (isOver = true));
      // Readers are not held up, and come after it.
      expect((await content(platform, token, 'GET', `${volumeID}/path?path=/a`)).status).toBe(404);
      expect(isOver).toBe(false);
      for (const place of places) place[Symbol.dispose]();
      expect((await upload).status).toBe(201);
      expect((await platform.call('DELETE', `/volumes/${volumeID}`)).status).toBe(204);
    });

    test('a volume that is adopted has the size that it has, whatever new ones of the team get', async () => {
      const volumeId = newUuid();
      await platform.node.volumes.create(volumeId, 77);
      platform.node.volumes.makeOld(volumeId);
      const adopt = `/admin/orphans/volumes/${volumeId}/adopt/${platform.team.teamId}`;
      const operator = { 'x-admin-token': adminToken };
      const { volumeID: other } = await create(platform, 'known');
      expect(await call(platform.socketPath, 'POST', adopt, { name: 'known' }, operator)).toMatchObject({
        status: 409,
        body: { message: 'name: the team has a volume "known" already' },
      });
      expect((await platform.call('DELETE', `/volumes/${other}`)).status).toBe(204);
      expect((await call(platform.socketPath, 'POST', adopt, { name: 'found' }, operator)).status).toBe(204);
      expect((await findVolume(platform.store.db, volumeId))?.sizeMiB).toBe(77);
      expect((await platform.call('DELETE', `/volumes/${volumeId}`)).status).toBe(204);
    });

    test("names that can't be, that are taken, and more than the limit are refused", async () => {
      for (const name of ['', 'a b', 'a/b', '../x', 'ü', 'x'.repeat(200)])
        expect([name, (await platform.call('POST', '/volumes', { name })).status]).toEqual([name, 400]);
      expect((await platform.call('POST', '/volumes', {})).status).toBe(400);
      const { key } = await platform.otherTeam('few', { volumes: 2 });
      const asked = await Promise.all(
        ['a', 'a', 'b', 'c'].map(name => platform.call('POST', '/volumes', { name }, { 'x-api-key': key })),
      );
      const statuses = asked.map(({ status }) => status).toSorted();
      expect(statuses.filter(status => status === 201)).toHaveLength(2);
      expect(statuses.every(status => [201, 400, 429].includes(status))).toBe(true);
      const refused = await platform.call('POST', '/volumes', { name: 'd' }, { 'x-api-key': key });
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, null]);
      // A volume that was refused after its content was made has left none.
      const known = await Promise.all(
        (await platform.node.volumes.list()).map(({ volumeId }) => findVolume(platform.store.db, volumeId)),
      );
      expect(known).not.toContain(null);
      const none = await platform.otherTeam('none', { volumes: 0 });
      expect((await platform.call('POST', '/volumes', { name: 'a' }, { 'x-api-key': none.key })).status).toBe(403);
    });

    test('a token says what it is for, and is good for nothing else', async () => {
      const volume = await create(platform, 't');
      const other = await create(platform, 'o');
      const [header, claims] = claimsOf(volume.token);
      expect(header).toMatchObject({ alg: 'HS256', typ: 'JWT', kid: expect.any(String), tokid: claims?.['jti'] });
      expect(claims).toMatchObject({
        aud: 'https://api.localhost',
        sub: platform.team.teamId,
        volid: volume.volumeID,
        voltype: expect.any(String),
      });
      expect(Number(claims?.['exp']) - Number(claims?.['iat'])).toBe(24 * 3600);
      const read = `${volume.volumeID}/path?path=/`;
      expect((await content(platform, volume.token, 'GET', read)).status).toBe(200);
      expect((await content(platform, other.token, 'GET', read)).status).toBe(403);
      for (const token of ['', 'x', platform.key, volume.token.slice(0, -2), volume.token.replace('.', '.x')])
        expect((await content(platform, token, 'GET', read)).status).toBe(401);
      const record = await findVolume(platform.store.db, volume.volumeID);
      if (!record) throw new Error('the volume is gone');
      const { parts } = platform.api;
      const dayUs = 24 * 3600 * 1_000_000;
      for (const [changes, status] of [
        [{}, 200],
        [{ domain: 'elsewhere' }, 401],
        [{ clock: () => parts.clock() - dayUs }, 401],
        // Made before a wrong clock was corrected.
        [{ clock: () => parts.clock() + dayUs }, 200],
        [{ seed: new Uint8Array(32) }, 401],
      ] as const) {
        expect((await content(platform, volumeToken({ ...parts, ...changes }, record), 'GET', read)).status).toBe(
          status,
        );
      }
      for (const [change, statuses] of [
        [{ blocked: true }, [200, 403, 204]],
        [{ banned: true }, [403, 403, 403]],
      ] as const) {
        const team = await platform.otherTeam(Object.keys(change)[0]);
        const theirs = (await platform.call('POST', '/volumes', { name: 'v' }, { 'x-api-key': team.key })).body as {
          volumeID: string;
          token: string;
        };
        await content(platform, theirs.token, 'POST', `${theirs.volumeID}/dir?path=/d`);
        await call(platform.socketPath, 'PATCH', `/admin/teams/${team.team.teamId}`, change, {
          'x-admin-token': adminToken,
        });
        const asked = [
          ['GET', 'path?path=/'],
          ['POST', 'dir?path=/e'],
          ['DELETE', 'path?path=/d'],
        ] as const;
        const answered = [];
        for (const [method, path] of asked)
          answered.push((await content(platform, theirs.token, method, `${theirs.volumeID}/${path}`)).status);
        expect([change, answered]).toEqual([change, [...statuses]]);
      }
      await platform.call('DELETE', `/volumes/${volume.volumeID}`);
      expect((await content(platform, volume.token, 'GET', read)).status).toBe(401);
    });

    test('content goes in and out', async () => {
      const { volumeID, token } = await create(platform, 'c');
      const written = await content(platform, token, 'PUT', `${volumeID}/file?path=/f&force=true`, 'hello');
      expect(written).toMatchObject({
        status: 201,
        body: { name: 'f', path: '/f', type: 'file', size: 5, mtime: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) },
      });
      const response = await fetch(`http://api/volumecontent/${volumeID}/file?path=f`, {
        unix: platform.socketPath,
        headers: { authorization: `Bearer ${token}` },
      });
      expect([response.status, response.headers.get('content-type'), await response.text()]).toEqual([
        200,
        'application/octet-stream',
        'hello',
      ]);
      expect(
        (await fetch(`http://api/volumecontent/${volumeID}/file?path=f`, { method: 'HEAD', unix: platform.socketPath }))
          .status,
      ).toBe(405);
      for (const bad of ['file', 'file?path=', 'dir?path=/&depth=0', 'dir?path=/&depth=11', 'dir?path=/&depth=x']) {
        expect([bad, (await content(platform, token, 'GET', `${volumeID}/${bad}`)).status]).toEqual([bad, 400]);
      }
      for (const bad of ['uid=-1', 'uid=65536', 'mode=4096', 'gid=x'])
        expect([bad, (await content(platform, token, 'PUT', `${volumeID}/file?path=g&${bad}`, 'x')).status]).toEqual([
          bad,
          400,
        ]);
      expect((await content(platform, token, 'PATCH', `${volumeID}/path?path=f`, { mode: 99999 })).status).toBe(400);
      expect((await content(platform, token, 'DELETE', `${volumeID}/path?path=none`)).status).toBe(404);
    });

    test('volumes are mounted by name, and not deleted while a sandbox has them', async () => {
      const { volumeID, name } = await create(platform, 'm');
      const volumeMounts = [
        { name, path: '/data' },
        { name, path: '/data/again' },
      ];
      const { sandboxID } = await platform.createSandbox({ volumeMounts });
      expect((await platform.call('GET', `/sandboxes/${sandboxID}`)).body).toMatchObject({ volumeMounts });
      expect(platform.node.created.at(-1)?.volumes).toEqual([
        { volumeId: volumeID, path: '/data' },
        { volumeId: volumeID, path: '/data/again' },
      ]);
      const listed = (await platform.call('GET', '/volumes')).body;
      expect(listed).toContainEqual(expect.objectContaining({ volumeID, sandboxCount: 1 }));
      const refused = await platform.call('DELETE', `/volumes/${volumeID}`);
      expect(refused).toMatchObject({ status: 409, body: { message: expect.stringContaining(sandboxID) } });
      await platform.call('POST', `/sandboxes/${sandboxID}/pause`);
      expect((await platform.call('DELETE', `/volumes/${volumeID}`)).status).toBe(409);
      expect((await platform.call('DELETE', `/sandboxes/${sandboxID}`)).status).toBe(204);
      expect((await platform.call('DELETE', `/volumes/${volumeID}`)).status).toBe(204);
    });

    test('of a create with a volume and its deletion at the same time, one is refused', async () => {
      const outcomes = new Set<string>();
      for (let round = 0; round < 12; round++) {
        const { volumeID, name } = await create(platform, `race${round}`);
        const remove = async () => {
          await Bun.sleep(round % 4);
          return platform.call('DELETE', `/volumes/${volumeID}`);
        };
        const [made, removed] = await Promise.all([
          platform.call('POST', '/v2/sandboxes', { templateID: 'base', volumeMounts: [{ name, path: '/data' }] }),
          remove(),
        ]);
        outcomes.add(`${made.status} ${removed.status}`);
        expect(['201 409', '400 204']).toContain(`${made.status} ${removed.status}`);
        if (made.status === 201)
          await platform.call('DELETE', `/sandboxes/${(made.body as { sandboxID: string }).sandboxID}`);
      }
      expect(outcomes.size).toBeGreaterThan(0);
    });

    test('all that is wrong with mounts is told at once', async () => {
      const { name } = await create(platform, 'w');
      const stranger = await platform.otherTeam('stranger');
      await platform.call('POST', '/volumes', { name: 'theirs' }, { 'x-api-key': stranger.key });
      const volumeMounts = [
        { name: 'theirs', path: '/a' },
        { name, path: '/a' },
        { name, path: '/proc/x' },
        { name, path: '/' },
        { name: 'none', path: 'b' },
      ];
      const answer = await platform.call('POST', '/v2/sandboxes', { templateID: 'base', volumeMounts });
      expect(answer.status).toBe(400);
      const { message } = answer.body as { message: string };
      for (const field of [
        'volumeMounts[0].name',
        'volumeMounts[1].path',
        'volumeMounts[2].path',
        'volumeMounts[3].path',
        'volumeMounts[4].name',
        'volumeMounts[4].path',
      ])
        expect(message).toContain(field);
    });

    test('forks and sandboxes made from snapshots have the volumes', async () => {
      const { volumeID, name } = await create(platform, 's');
      const volumes = [{ volumeId: volumeID, path: '/data' }];
      const { sandboxID } = await platform.createSandbox({ volumeMounts: [{ name, path: '/data' }] });
      expect((await platform.call('POST', `/sandboxes/${sandboxID}/fork`)).status).toBe(201);
      expect(platform.node.created.at(-1)?.volumes).toEqual(volumes);
      const { snapshotID } = (await platform.call('POST', `/sandboxes/${sandboxID}/snapshots`)).body as {
        snapshotID: string;
      };
      const child = await platform.createSandbox({ templateID: snapshotID });
      expect(platform.node.created.at(-1)?.volumes).toEqual(volumes);
      expect((await platform.call('GET', `/sandboxes/${child.sandboxID}`)).body).toMatchObject({
        volumeMounts: [{ name, path: '/data' }],
      });
      // Another team gets nothing of it, although the snapshot is public.
      await platform.call('PATCH', `/v2/templates/${snapshotID.split(':')[0]}`, { public: true });
      const stranger = { 'x-api-key': (await platform.otherTeam('strange')).key };
      await platform.call('POST', '/volumes', { name }, stranger);
      const refused = await platform.call('POST', '/v2/sandboxes', { templateID: snapshotID }, stranger);
      expect(refused).toMatchObject({ status: 400, body: { message: expect.stringContaining('/data') } });
      for (const { sandboxId } of platform.node.executions()) await platform.call('DELETE', `/sandboxes/${sandboxId}`);
      expect((await platform.call('DELETE', `/volumes/${volumeID}`)).status).toBe(204);
      // It can't start without the volume; with another one it can.
      expect((await platform.call('POST', '/v2/sandboxes', { templateID: snapshotID })).status).toBe(400);
      const many = Array.from({ length: 17 }, (_, index) => ({ name: 'k', path: `/m${index}` }));
      expect((await platform.call('POST', '/v2/sandboxes', { templateID: 'base', volumeMounts: many })).status).toBe(
        400,
      );
      const other = await create(platform, 'r');
      await platform.createSandbox({ templateID: snapshotID, volumeMounts: [{ name: other.name, path: '/data' }] });
      expect(platform.node.created.at(-1)?.volumes).toEqual([{ volumeId: other.volumeID, path: '/data' }]);
    });

    test('a sandbox with volumes of its snapshot stays on their machine', async () => {
      const { parts } = platform.api;
      const { volumeID, name } = await create(platform, 'stays');
      const { sandboxID } = await platform.createSandbox({ volumeMounts: [{ name, path: '/data' }] });
      const made = (await platform.call('POST', `/sandboxes/${sandboxID}/snapshots`)).body as { snapshotID: string };
      const durablePauses = { isUsable: true, requireUsable() {} } as unknown as DurablePauses;
      const options = { ...defaultOptions, timeoutSeconds: 60, secure: true, autoPause: true };
      const ask = (template: string, autoPauseDurability?: 'cluster') =>
        createSandbox(
          { ...parts, durablePauses },
          { ...platform.team, pauseDurability: 'cluster' },
          {
            ...{ template, volumeMounts: [], isDurabilityUsual: autoPauseDurability === undefined },
            options: { ...options, ...(autoPauseDurability && { autoPauseDurability }) },
          },
          new AbortController().signal,
        );
      await expect(ask(made.snapshotID, 'cluster')).rejects.toMatchObject({
        code: 'precondition',
        message: expect.stringContaining('autoPauseDurability'),
      });
      expect(await ask(made.snapshotID)).toMatchObject({ autoPauseDurability: 'node' });
      expect(await ask('base')).toMatchObject({ autoPauseDurability: 'cluster' });
      // By now, another volume may have the name.
      const home = (volumeId: string) => homeOfVolumes(parts, platform.team, [], [{ volumeId, name, path: '/data' }]);
      expect([await home(volumeID), await home(newUuid())]).toEqual(['node-1', undefined]);
      for (const { sandboxId } of platform.node.executions()) await platform.call('DELETE', `/sandboxes/${sandboxId}`);
    });

    test('what was to go from a machine to which its volume is moving stays, and goes later unless it comes', async () => {
      const { parts } = platform.api;
      const { volumeID } = await create(platform, 'coming');
      const setPlace = (place: { node_id: string; moving_to: string | null }) =>
        parts.db.updateTable('volumes').set(place).where('volume_id', '=', volumeID).execute();
      const later = { ...parts, clock: () => parts.clock() + 3600 * 1_000_000 };
      const isHere = async () => (await platform.node.volumes.list()).some(({ volumeId }) => volumeId === volumeID);
      await recordVolumeRemoval(parts.db, { volumeId: volumeID, nodeId: 'node-1' }, parts.clock());
      await setPlace({ node_id: 'node-2', moving_to: 'node-1' });
      await reconcileVolumes(later);
      expect(await isHere()).toBe(true);
      await setPlace({ node_id: 'node-2', moving_to: null });
      await reconcileVolumes(later);
      expect(await isHere()).toBe(false);
      await parts.db.deleteFrom('volumes').where('volume_id', '=', volumeID).execute();
    });

    test('content of a create that was cut off, and of a delete that the node missed, goes; what the store does not know stays until an operator decides', async () => {
      const { parts } = platform.api;
      const orphan = newUuid();
      await platform.node.volumes.create(orphan);
      platform.node.volumes.makeOld(orphan);
      const kept = await create(platform, 'k');
      const cutOff = newUuid();
      await platform.node.volumes.create(cutOff);
      await recordVolumeRemoval(parts.db, { volumeId: cutOff, nodeId: 'node-1' }, parts.clock());
      const missed = await create(platform, 'm');
      const remove = platform.node.volumes.remove;
      platform.node.volumes.remove = () => Promise.reject(new Error('away'));
      expect((await platform.call('DELETE', `/volumes/${missed.volumeID}`)).status).toBe(204);
      platform.node.volumes.remove = remove;
      const here = async () =>
        (await platform.node.volumes.list())
          .map(({ volumeId }) => volumeId)
          .filter(id => [orphan, kept.volumeID, cutOff, missed.volumeID].includes(id));
      await reconcileVolumes(parts);
      expect((await here()).toSorted()).toEqual([orphan, kept.volumeID, cutOff, missed.volumeID].toSorted());
      await reconcileVolumes({ ...parts, clock: () => parts.clock() + 3600 * 1_000_000 });
      expect((await here()).toSorted()).toEqual([orphan, kept.volumeID].toSorted());
      expect(await parts.db.selectFrom('volume_removals').selectAll().execute()).toEqual([]);
      const operator = (method: string, path: string, body?: unknown) =>
        call(platform.socketPath, method, `/admin/orphans${path}`, body, { 'x-admin-token': adminToken });
      expect((await operator('GET', '')).body).toMatchObject({ volumes: [{ volumeID: orphan }] });
      expect(
        (await operator('POST', `/volumes/${orphan}/adopt/${platform.team.teamId}`, { name: 'found' })).status,
      ).toBe(204);
      expect((await operator('GET', '')).body).toMatchObject({ volumes: [] });
      expect((await platform.call('GET', '/volumes')).body).toContainEqual(
        expect.objectContaining({ volumeID: orphan, name: 'found' }),
      );
    });
  }),
);
