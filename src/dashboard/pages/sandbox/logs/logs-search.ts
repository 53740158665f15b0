import { sandboxLogLevels, sandboxLoggers } from '../../../../protocol/logs.ts';
import type { SandboxLogLevel, SandboxLogger } from '../../../../protocol/logs.ts';

/** The logs page's state in the URL. */
export type LogsSearch = {
  level?: SandboxLogLevel;
  logger?: SandboxLogger;
  find?: string;
  /** `find` is a regular expression. */
  regex?: true;
  /** How many entries around each match are shown too. */
  around?: number;
  /** Long messages are cut instead of wrapped. */
  wrap?: false;
  /** The place of the linked entry. */
  at?: number;
};

/** The choices for the number of entries around a hit. */
export const arounds = [3, 10, 30] as const;

/** Reads the search part of a URL, which anybody may have written. */
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

/** The case-insensitive pattern of an expression or of a plain text; null if it is no valid regular expression. */
export function patternOf(find: string, isText = false): RegExp | null {
  try {
    return new RegExp(isText ? find.replace(special, '\\$&') : find, 'iu');
  } catch {
    return null; // usually half typed: the field says that it is not valid
  }
}
