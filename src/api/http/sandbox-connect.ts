import { ConnectSandbox, ConnectSandboxV2, Sandbox, defaultTimeoutSeconds } from '../../protocol/api/sandbox.ts';
import type { Change } from '../app/audit.ts';
import type { TeamCaller } from '../app/authentication.ts';
import type { App } from '../app/context.ts';
import { connectSandbox, type ConnectOptions } from '../app/sandbox-connect.ts';
import { route } from './route.ts';
import { sandboxParams } from './sandbox-read.ts';
import { endChange } from './sandbox-timeout.ts';
import { sandboxView } from './sandbox-view.ts';

export const resumedFromHeader = { 'X-Resumed-From': '`memory`: with the processes that ran; `filesystem`: booted from its files' };

const responses = {
  200: { description: 'It was running', schema: Sandbox },
  201: { description: 'It was paused and is running again', schema: Sandbox, headers: resumedFromHeader },
} as const;
const errors = [404, 409, 429, 503];

export const connectSandboxV1 = route({
  operationId: 'connectSandbox',
  method: 'POST',
  path: '/sandboxes/{sandboxID}/connect',
  summary: 'Make sure that a sandbox runs',
  auth: 'team',
  params: sandboxParams,
  body: ConnectSandbox,
  responses,
  errors,
  handle: (app, { caller, params, body, note }) => connect(app, caller, params.sandboxID, { seconds: body.timeout, memory: body.memory ?? true }, note),
});

export const connectSandboxV2 = route({
  operationId: 'connectSandboxV2',
  method: 'POST',
  path: '/v2/sandboxes/{sandboxID}/connect',
  summary: 'Make sure that a sandbox runs',
  auth: 'team',
  params: sandboxParams,
  body: ConnectSandboxV2,
  bodyOptional: true,
  responses,
  errors,
  handle: (app, { caller, params, body, note }) =>
    connect(app, caller, params.sandboxID, { seconds: body.timeout ?? defaultTimeoutSeconds.v2, memory: body.memory ?? true }, note),
});

async function connect(app: App, { team }: TeamCaller, sandboxId: string, options: ConnectOptions, note: (change: Change) => void) {
  const { before, sandbox, resumedFrom } = await connectSandbox(app, team, sandboxId, options);
  note(endChange(before, sandbox));
  const body = sandboxView(app, sandbox);
  return resumedFrom === null ? { status: 200 as const, body } : { status: 201 as const, body, headers: { 'X-Resumed-From': resumedFrom } };
}
