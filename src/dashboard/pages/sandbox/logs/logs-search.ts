import { sandboxLogLevels, sandboxLoggers } from '../../../../protocol/logs.ts';
import type { SandboxLogLevel, SandboxLogger } from '../../../../protocol/logs.ts';

/** What the URL says of the logs page. */
export type LogsSearch = {
  level?: SandboxLogLevel;
  logger?: SandboxLogger;
  find?: string;
  /** `find` is a regular expression. */
  regex?: true;
  /** So many entries around each that matches are shown too. */
  around?: number;
  /** Long messages are cut instead of wrapped. */
  wrap?: false;
  /** The place of the entry that is linked to. */
  at?: number;
};

/** How many entries around a hit can be asked for. */
export const arounds = [3, 10, 30] as const;

/** Reads the search of a URL that anybody may have written. */
export function readLogsSearch(raw: Record<string, unknown>): LogsSearch {
  const level = sandboxLogLevels.find(one => one === raw['level']);
  const logger = sandboxLoggers.find(one => one === raw['logger']);
  const { find, at, around } = raw;
  const text = typeof find === 'number' ? String(find) : find;
  return {
    ...(level && { level }),
    ...(logger && { logger }),
    ...(typeof text === 'string' && text !== '' && { find: text }),
    ...((raw['regex'] === true || raw['regex'] === 'true') && { regex: true as const }),
    ...(arounds.some(one => one === around) && { around: around as number }),
    ...((raw['wrap'] === false || raw['wrap'] === 'false') && { wrap: false as const }),
    ...(typeof at === 'number' && Number.isSafeInteger(at) && at > 0 && { at }),
  };
}

const special = /[.*+?^${}()|[\]\\]/g;

/** What an expression, or a text as it stands, matches in whatever case; null where it is no regular expression. */
export function patternOf(find: string, isText = false): RegExp | null {
  try {
    return new RegExp(isText ? find.replace(special, '\\$&') : find, 'iu');
  } catch {
    return null; // half typed, most often: the field says that it is none
  }
}
