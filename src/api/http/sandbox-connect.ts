import { ConnectSandbox, ConnectSandboxV2, Sandbox, defaultTimeoutSeconds } from '../../protocol/api/sandbox.ts';
import type { Change } from '../app/audit.ts';
import type { TeamCaller } from '../app/authentication.ts';
import type { App } from '../app/context.ts';
import { connectSandbox } from '../app/sandbox-connect.ts';
import { route } from './route.ts';
import { sandboxParams } from './sandbox-read.ts';
import { endChange } from './sandbox-timeout.ts';
import { sandboxView } from './sandbox-view.ts';

const responses = {
  200: { description: 'It was running', schema: Sandbox },
  201: { description: 'It was paused and is running again', schema: Sandbox },
} as const;
const errors = [404, 409, 501, 503, 504];

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
  handle: (app, { caller, params, body, note }) => connect(app, caller, params.sandboxID, body.timeout, note),
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
    connect(app, caller, params.sandboxID, body.timeout ?? defaultTimeoutSeconds.v2, note),
});

async function connect(app: App, { team }: TeamCaller, sandboxId: string, seconds: number, note: (change: Change) => void) {
  const { before, sandbox, resumed } = await connectSandbox(app, team, sandboxId, seconds);
  note(endChange(before, sandbox));
  const body = sandboxView(app, sandbox);
  return resumed ? { status: 201 as const, body } : { status: 200 as const, body };
}
