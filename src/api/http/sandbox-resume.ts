import { SandboxResume } from '../../protocol/api/lifecycle.ts';
import { Sandbox, defaultTimeoutSeconds } from '../../protocol/api/sandbox.ts';
import { resumeTeamsSandbox } from '../app/sandbox-resume.ts';
import { route } from './route.ts';
import { resumedFromHeader } from './sandbox-connect.ts';
import { sandboxParams } from './sandbox-read.ts';
import { endChange } from './sandbox-timeout.ts';
import { sandboxView } from './sandbox-view.ts';

export const resumeSandboxRoute = route({
  operationId: 'resumeSandbox',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/resume',
  summary: 'Let a paused sandbox run again; connect does this too',
  deprecated: true,
  auth: 'team',
  params: sandboxParams,
  body: SandboxResume,
  bodyOptional: true,
  responses: { 201: { description: 'It runs again', schema: Sandbox, headers: resumedFromHeader } },
  errors: [404, 409, 429, 503],
  async handle(app, { caller, params, body, note }) {
    const { timeout: seconds = defaultTimeoutSeconds.v1, memory = true, autoPause } = body;
    const options = { seconds, memory, ...(autoPause !== undefined && { autoPause }) };
    const { before, sandbox, from } = await resumeTeamsSandbox(app, caller.team, params.sandboxID, options);
    note(endChange(before, sandbox));
    return { status: 201, body: sandboxView(app, sandbox), headers: { 'X-Resumed-From': from } };
  },
});
