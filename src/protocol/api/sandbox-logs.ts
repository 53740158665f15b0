import { Type } from '@sinclair/typebox';
import type { Static } from '@sinclair/typebox';
import { sandboxLoggers, sandboxLogLevels, sandboxLogPageMax } from '../logs.ts';
import { dateTime, int32, int64, oneOf, stringMap } from './primitives.ts';

/** The longest text that logs can be searched for. */
const logSearchCharactersMax = 256;

const limit = (what: string) => Type.Optional(int32({ minimum: 0, default: sandboxLogPageMax, description: what }));

/** Filters that select entries. */
const filter = {
  level: Type.Optional(oneOf(sandboxLogLevels)),
  logger: Type.Optional(oneOf(sandboxLoggers)),
  search: Type.Optional(
    Type.String({ maxLength: logSearchCharactersMax, description: 'Text in the message, in whatever case' }),
  ),
};

/** Query of GET /sandboxes/{sandboxID}/logs. */
export const SandboxLogsQuery = Type.Object({
  start: Type.Optional(int64({ minimum: 0, description: 'Entries from this time on, milliseconds of Unix time' })),
  limit: limit(`How many entries; never more than ${sandboxLogPageMax}`),
});

/** Query of GET /v2/sandboxes/{sandboxID}/logs. */
export const SandboxLogsQueryV2 = Type.Object({
  cursor: Type.Optional(
    int64({
      minimum: 0,
      description: 'Milliseconds of Unix time: forward, entries from then on; backward, entries before',
    }),
  ),
  limit: Type.Optional(int32({ minimum: 0, maximum: sandboxLogPageMax, default: sandboxLogPageMax })),
  direction: Type.Optional(oneOf(['forward', 'backward'])),
  ...filter,
});

/** Query of GET /sandboxes/{sandboxID}/logs/stream, beside what every stream takes. */
export const sandboxLogStreamQuery = {
  tail: Type.Optional(
    int32({
      minimum: 0,
      maximum: sandboxLogPageMax,
      default: 0,
      description: 'Without `after`: so many entries that are there already come first',
    }),
  ),
  ...filter,
};

const SandboxLogLine = Type.Object(
  {
    timestamp: dateTime(),
    line: Type.String({ description: 'A JSON object with level, logger, message and the fields of the entry' }),
  },
  { $id: 'SandboxLog' },
);

/** An entry of a sandbox's log. */
export const SandboxLogEntry = Type.Object(
  {
    timestamp: dateTime(),
    message: Type.String(),
    level: oneOf(sandboxLogLevels),
    fields: stringMap('What the entry is about (logger), and its parts'),
  },
  { $id: 'SandboxLogEntry' },
);

export type SandboxLogEntry = Static<typeof SandboxLogEntry>;

const partial = Type.Optional(
  Type.Boolean({ description: 'A machine that has some of it is out of reach now: there may be more' }),
);

/** Answer of GET /sandboxes/{sandboxID}/logs: the same entries as lines and as objects. */
export const SandboxLogs = Type.Object(
  { logs: Type.Array(SandboxLogLine), logEntries: Type.Array(SandboxLogEntry), partial },
  { $id: 'SandboxLogs' },
);

/** Answer of GET /v2/sandboxes/{sandboxID}/logs. */
export const SandboxLogsV2 = Type.Object(
  { logs: Type.Array(SandboxLogEntry), partial },
  { $id: 'SandboxLogsV2Response' },
);
