import { microsPerSecond } from '../../../base/clock.ts';
import type { SessionRecord } from '../record.ts';

/** A session ends this long after it began, however much it is used. */
export const sessionSeconds = 7 * 24 * 3600;
/** And this long after its last request. */
export const sessionIdleSeconds = 12 * 3600;

/** For so long a session counts as proven after it proved whose it is. */
const provenSeconds = 10 * 60;

/** Whether a session that proved at `provenAtUs` whose it is needs no new proof at `nowUs`. */
export const isProven = (provenAtUs: number, nowUs: number): boolean =>
  nowUs < provenAtUs + provenSeconds * microsPerSecond;

/** When a session ends at the latest, microseconds. */
export const sessionEndUs = ({ createdAtUs }: Pick<SessionRecord, 'createdAtUs'>): number =>
  createdAtUs + sessionSeconds * microsPerSecond;

/** Whether a session counts at `nowUs`. */
export function isLive(session: Pick<SessionRecord, 'createdAtUs' | 'lastUsedAtUs'>, nowUs: number): boolean {
  return nowUs < sessionEndUs(session) && nowUs < session.lastUsedAtUs + sessionIdleSeconds * microsPerSecond;
}
