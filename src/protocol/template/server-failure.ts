import { AtollError, messageOf } from '../../base/error.ts';

/** `detail` of errors of a template's start or ready command in a new sandbox. */
const serverFailed = 'template_start_failed';

/** The error for a template whose server does not run in a new sandbox: others of the template would fail as well. */
export function serverFailure(cause: unknown): AtollError {
  return new AtollError('unavailable', messageOf(cause), { detail: serverFailed, cause });
}

/** Says whether a sandbox could not start for that reason: then it is no use to start another one. */
export function isServerFailure(error: unknown): boolean {
  return error instanceof AtollError && error.detail === serverFailed;
}
