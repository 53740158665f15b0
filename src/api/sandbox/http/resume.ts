import { SandboxResume } from '../../../protocol/api/lifecycle.ts';
import { Sandbox, defaultTimeoutSeconds } from '../../../protocol/api/sandbox.ts';
import { resumeTeamsSandbox } from '../workflows/resume/resume.ts';
import { route } from '../../http/route.ts';
import { resumedFromHeader } from './connect.ts';
import { sandboxParams } from './read.ts';
import { endChange } from './timeout.ts';
import { sandboxView } from './view.ts';
import type { ResumeDeps } from '../workflows/resume/resume.ts';

/** `POST /sandboxes/{sandboxID}/resume` */
export const resumeSandboxRoute = route({
  operationId: 'resumeSandbox',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/resume',
  summary: 'Resume a paused sandbox; connect does this too',
  deprecated: true,
  auth: 'team',
  params: sandboxParams,
  body: SandboxResume,
  bodyOptional: true,
  responses: { 201: { description: 'It runs again', schema: Sandbox, headers: resumedFromHeader } },
  errors: [404, 409, 429],
  async handle(deps: ResumeDeps, { caller, params, body, audit }) {
    const { timeout: seconds = defaultTimeoutSeconds.v1, memory = true, autoPause } = body;
    const options = { seconds, memory, ...(autoPause !== undefined && { autoPause }) };
    const { before, sandbox, from } = await resumeTeamsSandbox(deps, caller.team, params.sandboxID, options);
    audit(endChange(before, sandbox));
    return { status: 201, body: sandboxView(deps.seed, sandbox), headers: { 'X-Resumed-From': from } };
  },
});
