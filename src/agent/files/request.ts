import { AtollError } from '../../base/error.ts';
import type { Agent } from '../agent.ts';
import { resolvePath } from '../sandbox/paths.ts';
import { findUser, type User } from '../sandbox/users.ts';
import { requireFileAccess } from './access.ts';
import type { FileOperation } from '../../protocol/file-signature.ts';

/** The query of `/files`. */
export type FileRequest = {
  user: User;
  /** As given, before resolution; empty when absent. */
  path: string;
  resolve(path: string): string;
};

/** Reads who asks for which file, and checks access. Errors: `unauthenticated`, also for a user that does not exist. */
export function readFileRequest(
  agent: Pick<Agent, 'settings'>,
  request: Request,
  url: URL,
  operation: FileOperation,
): FileRequest {
  const { accessToken, defaultUser, defaultWorkdir } = agent.settings();
  const query = url.searchParams;
  requireFileAccess(request, query, operation, accessToken);
  const user = findUser(query.get('username') || defaultUser);
  return { user, path: query.get('path') ?? '', resolve: path => resolvePath(path, user, defaultWorkdir) };
}

/** The named file is of the wrong kind for the request. */
export const unsuitable = (path: string, what: string) => new AtollError('invalid', `path '${path}' is ${what}`);
