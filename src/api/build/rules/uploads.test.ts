import { expect, test } from 'bun:test';
import { Uploads, uploadsPerTeamMax, uploadsWaitingPerTeamMax } from './uploads.ts';

const staying = new AbortController().signal;
const tick = () => Bun.sleep(1);

const take = (uploads: Uploads, team: string, count: number) =>
  Promise.all(Array.from({ length: count }, () => uploads.begin(team, staying)));

test('a team’s upload beyond its limit waits until another one has ended', async () => {
  const uploads = new Uploads();
  const [first] = await take(uploads, 'team', uploadsPerTeamMax);
  let hasBegun = false;
  const next = uploads.begin('team', staying).then(() => (hasBegun = true));
  await tick();
  expect(hasBegun).toBe(false);
  first?.[Symbol.dispose]();
  expect(await next).toBe(true);
});

test('an upload that waits too long is refused, and leaves its place to others', async () => {
  const uploads = new Uploads(20);
  const [first] = await take(uploads, 'team', uploadsPerTeamMax);
  const late = uploads.begin('team', staying);
  await expect(late).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: 1 });
  first?.[Symbol.dispose]();
  await uploads.begin('team', staying);
});

test('no more uploads wait than a team’s queue has room for', async () => {
  const uploads = new Uploads(200);
  await take(uploads, 'team', uploadsPerTeamMax);
  const waiting = Promise.allSettled(
    Array.from({ length: uploadsWaitingPerTeamMax }, () => uploads.begin('team', staying)),
  );
  await expect(uploads.begin('team', staying)).rejects.toThrow('The team has 128 uploads that wait');
  await waiting;
});

test('a client that leaves while it waits takes no place', async () => {
  const uploads = new Uploads(100);
  const [first] = await take(uploads, 'team', uploadsPerTeamMax);
  const leaving = new AbortController();
  const left = uploads.begin('team', leaving.signal);
  const stays = uploads.begin('team', staying);
  leaving.abort();
  first?.[Symbol.dispose]();
  await expect(left).rejects.toMatchObject({ code: 'canceled' });
  await stays;
});

test('a place that gets free goes to the team with the fewest uploads', async () => {
  const uploads = new Uploads(100);
  const [first] = await take(uploads, 'a', uploadsPerTeamMax);
  for (const team of ['b', 'c', 'd']) await take(uploads, team, uploadsPerTeamMax);
  const begun: string[] = [];
  const wait = (team: string) =>
    uploads.begin(team, staying).then(
      () => begun.push(team),
      () => undefined,
    );
  const greedy = wait('a');
  const modest = wait('e');
  first?.[Symbol.dispose]();
  await modest;
  expect(begun).toEqual(['e']);
  await greedy;
});
