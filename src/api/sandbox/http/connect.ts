import { ConnectSandbox, ConnectSandboxV2, Sandbox, defaultTimeoutSeconds } from '../../../protocol/api/sandbox.ts';
import { connectSandbox, type ConnectOptions } from '../workflows/connect.ts';
import { route } from '../../http/route.ts';
import { sandboxParams } from './read.ts';
import { endChange } from './timeout.ts';
import { sandboxView } from './view.ts';
import type { Change } from '../../event/record.ts';
import type { TeamCaller } from '../../credential/caller.ts';
import type { ResumeDeps } from '../workflows/resume/resume.ts';

/** The header that tells how a sandbox was resumed, for the API's document. */
export const resumedFromHeader = {
  'X-Resumed-From': '`memory`: with the processes that ran; `filesystem`: booted from its files',
};

const responses = {
  200: { description: 'It was running', schema: Sandbox },
  201: { description: 'It was paused and is running again', schema: Sandbox, headers: resumedFromHeader },
} as const;
const errors = [404, 409, 429];

/** `POST /sandboxes/{sandboxID}/connect` */
export const connectSandboxV1 = route({
  operationId: 'connectSandbox',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/connect',
  summary: 'Connect to a sandbox; resume it if it is paused',
  auth: 'team',
  params: sandboxParams,
  body: ConnectSandbox,
  responses,
  errors,
  handle: (deps: ResumeDeps, { caller, params, body, audit }) =>
    connect(deps, caller, params.sandboxID, { seconds: body.timeout, memory: body.memory ?? true }, audit),
});

/** `POST /v2/sandboxes/{sandboxID}/connect` */
export const connectSandboxV2 = route({
  operationId: 'connectSandboxV2',
  method: 'POST',
  path: '/v2/sandboxes/{sandboxID}/connect',
  summary: 'Connect to a sandbox; resume it if it is paused',
  auth: 'team',
  params: sandboxParams,
  body: ConnectSandboxV2,
  bodyOptional: true,
  responses,
  errors,
  handle: (deps: ResumeDeps, { caller, params, body, audit }) =>
    connect(
      deps,
      caller,
      params.sandboxID,
      { seconds: body.timeout ?? defaultTimeoutSeconds.v2, memory: body.memory ?? true },
      audit,
    ),
});

async function connect(
  deps: ResumeDeps,
  { team }: TeamCaller,
  sandboxId: string,
  options: ConnectOptions,
  audit: (change: Change) => void,
) {
  const { before, sandbox, resumedFrom } = await connectSandbox(deps, team, sandboxId, options);
  audit(endChange(before, sandbox));
  const body = sandboxView(deps.seed, sandbox);
  return resumedFrom === null
    ? { status: 200 as const, body }
    : { status: 201 as const, body, headers: { 'X-Resumed-From': resumedFrom } };
}
