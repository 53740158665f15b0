import type { App } from './context.ts';
import type { SandboxRoute } from './directory.ts';
import { sandboxNotFound } from './sandbox-find.ts';

/**
 * Resumes a paused sandbox for traffic and answers its route. Errors: `not_found`.
 * Nothing pauses sandboxes yet, so all there can be is one that runs again or one that is gone.
 */
export async function wakeSandbox(app: App, sandboxId: string): Promise<SandboxRoute> {
  const route = app.directory.find(sandboxId);
  if (route?.state === 'running') return route;
  throw sandboxNotFound(sandboxId);
}
