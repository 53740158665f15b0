import { AtollError, messageOf } from '../../base/error.ts';

/** Marks errors of a template's start or ready command in a new sandbox: `detail` of the error. */
const serverFailed = 'template_start_failed';

/** Why the server of a template does not run in a new sandbox: others of the template would meet the same. */
export function serverFailure(cause: unknown): AtollError {
  return new AtollError('unavailable', messageOf(cause), { detail: serverFailed, cause });
}

/** Says whether that is why a sandbox could not be started: to start another one is no use. */
export function isServerFailure(error: unknown): boolean {
  return error instanceof AtollError && error.detail === serverFailed;
}
