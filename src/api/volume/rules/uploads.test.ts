import { expect, test } from 'bun:test';
import { VolumeUploads, volumeUploadsPerTeamMax } from './uploads.ts';

const staying = new AbortController().signal;

test('a team that has its share of a machine waits, and holds up nobody else and no other machine', async () => {
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
