import { AtollError, statusOf, type ErrorCode } from '../base/error.ts';
import { parseJson } from '../base/json-text.ts';

/** What a message of `process.Process/Start` says (connectrpc.com, JSON). */
type ProcessMessage = {
  hasStarted: boolean;
  /** Process ID inside the sandbox, once it has started. */
  pid: number | undefined;
  stdout: Buffer | undefined;
  stderr: Buffer | undefined;
  end: { exitCode: number; status: string } | undefined;
  /** Why the agent refused. */
  error: AtollError | undefined;
};

/** The most characters of an agent's text about an error or an end. */
const textCharactersMax = 500;
/** Codes of the Connect protocol that have another name here. */
const codes: Record<string, ErrorCode> = {
  invalid_argument: 'invalid',
  failed_precondition: 'invalid',
  permission_denied: 'forbidden',
  resource_exhausted: 'rate_limited',
};

/**
 * Reads a message. Whoever is root in a sandbox can speak for its agent: a member of the wrong type counts as absent
 * and is never passed on. Errors: `internal` for anything but JSON.
 */
export function readProcessMessage(payload: Buffer): ProcessMessage {
  const value = parseJson(payload.toString());
  if (value === undefined) throw new AtollError('internal', 'the agent sent what is no message');
  const { event, error } = membersOf(value);
  const { start, data, end } = membersOf(event);
  const { stdout, stderr } = membersOf(data);
  return {
    hasStarted: isObject(start),
    pid: numberOf(membersOf(start)['pid']),
    stdout: bytesOf(stdout),
    stderr: bytesOf(stderr),
    end: isObject(end) ? endOf(membersOf(end)) : undefined,
    error: isObject(error) ? errorOf(membersOf(error)) : undefined,
  };
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
const membersOf = (value: unknown): Record<string, unknown> =>
  isObject(value) ? (value as Record<string, unknown>) : {};
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
const textOf = (value: unknown, fallback: string): string =>
  typeof value === 'string' ? value.slice(0, textCharactersMax) : fallback;

/** Accepts base64 text alone: a buffer made from an object would be as long as the object says. */
function bytesOf(value: unknown): Buffer | undefined {
  return typeof value === 'string' && value !== '' ? Buffer.from(value, 'base64') : undefined;
}

function endOf({ exitCode, status }: Record<string, unknown>): { exitCode: number; status: string } {
  return {
    exitCode: typeof exitCode === 'number' && Number.isInteger(exitCode) ? exitCode : 0,
    status: textOf(status, 'exit status 0'),
  };
}

function errorOf({ code, message }: Record<string, unknown>): AtollError {
  const name = textOf(code, 'internal');
  const known = Object.hasOwn(codes, name)
    ? codes[name]
    : Object.hasOwn(statusOf, name)
      ? (name as ErrorCode)
      : 'internal';
  return new AtollError(known ?? 'internal', textOf(message, 'the agent refused the command'));
}
