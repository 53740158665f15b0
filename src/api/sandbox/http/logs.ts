import {
  SandboxLogs,
  SandboxLogsQuery,
  SandboxLogsQueryV2,
  SandboxLogsV2,
} from '../../../protocol/api/sandbox-logs.ts';
import { sandboxLogPageMax, type SandboxLogEntry } from '../../../protocol/logs.ts';
import { type LogDeps, readSandboxLogs } from '../rules/logs.ts';
import { type Charging, chargeRequests } from '../../credential/rules/rate-limit.ts';
import { route } from '../../http/route.ts';
import { sandboxParams } from './read.ts';

/**
 * How many requests a search counts as: it reads all of a log, 8 MiB at most, while a page reads only what it shows.
 */
const searchRequests = 25;

/** Counts a search, where these filters mean one. */
export function chargeSearch(
  deps: Charging,
  caller: Parameters<typeof chargeRequests>[1],
  { level, logger, search }: { level?: unknown; logger?: unknown; search?: unknown },
): void {
  if (level || logger || search) chargeRequests(deps, caller, searchRequests - 1);
}

/** `GET /sandboxes/{sandboxID}/logs` */
export const readSandboxLogsV1 = route({
  operationId: 'getSandboxLogs',
  method: 'GET',
  path: '/sandboxes/{sandboxID}/logs',
  summary: 'Get the logs of a sandbox, oldest first',
  deprecated: true,
  auth: 'team',
  params: sandboxParams,
  query: SandboxLogsQuery,
  responses: { 200: { description: 'The entries', schema: SandboxLogs } },
  errors: [404],
  async handle(deps: LogDeps, { caller, params, query }) {
    const { start, limit = sandboxLogPageMax } = query;
    const page = {
      backward: false,
      limit: Math.min(limit, sandboxLogPageMax),
      ...(start !== undefined && { fromMs: start }),
    };
    const { entries, isPartial } = await readSandboxLogs(deps, caller.team, params.sandboxID, page);
    const body = { logs: entries.map(lineView), logEntries: entries.map(entryView) };
    return { status: 200, body: { ...body, ...(isPartial && { partial: true }) } };
  },
});

/** `GET /v2/sandboxes/{sandboxID}/logs` */
export const readSandboxLogsV2 = route({
  operationId: 'getSandboxLogsV2',
  method: 'GET',
  path: '/v2/sandboxes/{sandboxID}/logs',
  summary: 'Get a page of the logs of a sandbox, newest first by default',
  auth: 'team',
  params: sandboxParams,
  query: SandboxLogsQueryV2,
  responses: { 200: { description: 'The entries', schema: SandboxLogsV2 } },
  errors: [404],
  async handle(deps: LogDeps & Charging, { caller, params, query }) {
    const { cursor, limit = sandboxLogPageMax, direction = 'backward', level, logger, search } = query;
    const backward = direction === 'backward';
    chargeSearch(deps, caller, query);
    const { entries, isPartial } = await readSandboxLogs(deps, caller.team, params.sandboxID, {
      backward,
      limit,
      ...(cursor !== undefined && (backward ? { beforeMs: cursor } : { fromMs: cursor })),
      ...(level && { minimum: level }),
      ...(logger && { logger }),
      ...(search && { search }),
    });
    return { status: 200, body: { logs: entries.map(entryView), ...(isPartial && { partial: true }) } };
  },
});

const timestampOf = ({ timestampMs }: SandboxLogEntry) => new Date(timestampMs).toISOString();

/** Clients parse the line and show whatever is in it; three names belong to the entry itself. */
function lineView(entry: SandboxLogEntry) {
  const { level, logger, message, fields } = entry;
  return { timestamp: timestampOf(entry), line: JSON.stringify({ ...fields, level, logger, message }) };
}

/** An entry in the form of the API. */
export function entryView(entry: SandboxLogEntry) {
  const { level, logger, message, fields } = entry;
  return { timestamp: timestampOf(entry), message, level, fields: { ...fields, logger } };
}
