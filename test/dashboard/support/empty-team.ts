import assert from 'node:assert/strict';
import type { TestPlatform } from '../../support/platform.ts';

/** What a team has: the path that lists it, and the member by which each item is removed below `at`. */
const things = [
  { list: '/v2/sandboxes', at: '/sandboxes', id: 'sandboxID' },
  { list: '/volumes', at: '/volumes', id: 'volumeID' },
  { list: '/secrets', at: '/secrets', id: 'secretID' },
  { list: '/events/webhooks', at: '/events/webhooks', id: 'id' },
] as const;

/**
 * Removes what tests have left in a platform's first team, so that the next ones see only what they make themselves.
 */
export async function emptyTeam({ api }: TestPlatform): Promise<void> {
  for (const { list, at, id } of things) {
    for (;;) {
      const answer = await api('GET', list);
      assert.ok(answer.ok, `GET ${list}: ${answer.status}`);
      // A long list comes in parts.
      const some = (await answer.json()) as Record<string, string>[];
      if (some.length === 0) break;
      for (const one of some) {
        const { status } = await api('DELETE', `${at}/${one[id]}`);
        // One may have ended by itself.
        assert.ok(status < 300 || status === 404, `DELETE ${at}/${one[id]}: ${status}`);
      }
    }
  }
}
