import { microsPerSecond } from '../../../base/clock.ts';
import type { SessionRecord } from '../record.ts';

/** A session ends this long after it began, however much it is used. */
export const sessionSeconds = 7 * 24 * 3600;
/** And this long after its last request. */
export const sessionIdleSeconds = 12 * 3600;

/** How long a session counts as proven after it proved whose it is. */
const provenSeconds = 10 * 60;

/** Whether a session that proved whose it is at `provenAtUs` needs no new proof at `nowUs`. */
export const isProven = (provenAtUs: number, nowUs: number): boolean =>
  nowUs < provenAtUs + provenSeconds * microsPerSecond;

/** The latest end of a session, microseconds. */
export const sessionEndUs = ({ createdAtUs }: Pick<SessionRecord, 'createdAtUs'>): number =>
  createdAtUs + sessionSeconds * microsPerSecond;

/** Whether a session is valid at `nowUs`. */
export function isLive(session: Pick<SessionRecord, 'createdAtUs' | 'lastUsedAtUs'>, nowUs: number): boolean {
  return nowUs < sessionEndUs(session) && nowUs < session.lastUsedAtUs + sessionIdleSeconds * microsPerSecond;
}
