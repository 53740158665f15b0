import { expect, test } from 'bun:test';
import { VolumeUploads, volumeUploadsPerTeamMax } from './uploads.ts';

const staying = new AbortController().signal;

test('a team that has used its share of a machine waits, and delays nobody else and no other machine', async () => {
  const uploads = new VolumeUploads(20);
  const places = await Promise.all(
    Array.from({ length: volumeUploadsPerTeamMax }, () => uploads.begin('node', 'team', staying)),
  );
  await expect(uploads.begin('node', 'team', staying)).rejects.toMatchObject({ code: 'rate_limited' });
  await uploads.begin('node', 'other', staying);
  await uploads.begin('second', 'team', staying);
  const next = uploads.begin('node', 'team', staying);
  places[0]?.[Symbol.dispose]();
  await next;
});

test('files of a team that wait for the disk delay no other team, and no other machine', async () => {
  const uploads = new VolumeUploads(20);
  const slow = Promise.withResolvers<void>();
  const begun: string[] = [];
  const keep = (nodeId: string, teamId: string, until: Promise<void> = Promise.resolve()) =>
    uploads.keep(nodeId, teamId, () => (begun.push(`${nodeId} ${teamId}`), until));
  const held = Array.from({ length: 20 }, () => keep('node', 'team', slow.promise));
  await keep('node', 'other');
  await keep('node', 'third');
  await keep('second', 'team');
  expect(begun).toEqual([...Array<string>(4).fill('node team'), 'node other', 'node third', 'second team']);
  slow.resolve();
  await Promise.all(held);
  expect(begun).toHaveLength(23);
});
