import { NewSandbox, NewSandboxV2, Sandbox } from '../../protocol/api/sandbox.ts';
import type { Change } from '../app/audit.ts';
import { formatTime } from '../../base/time.ts';
import { createSandbox } from '../app/sandbox-create.ts';
import type { SandboxRecord } from '../store/sandbox-row.ts';
import { bodyBytesMax } from './body.ts';
import { route } from './route.ts';
import { sandboxView } from './sandbox-view.ts';

const created = { description: 'The sandbox runs and its agent accepts requests', schema: Sandbox };
const errors = [404, 429, 503, 504];

export const createSandboxV1 = route({
  operationId: 'createSandbox',
  method: 'POST',
  path: '/sandboxes',
  summary: 'Create a sandbox, secured only when asked for',
  auth: 'team',
  body: NewSandbox,
  bodyBytesMax: bodyBytesMax.createSandbox,
  responses: { 201: created },
  errors,
  async handle(app, { caller, body, signal, note }) {
    const sandbox = await createSandbox(app, caller.team, 'v1', body, signal);
    note(createdChange(sandbox));
    return { status: 201, body: sandboxView(app, sandbox) };
  },
});

export const createSandboxV2 = route({
  operationId: 'createSandboxV2',
  method: 'POST',
  path: '/v2/sandboxes',
  summary: 'Create a sandbox, always secured',
  auth: 'team',
  body: NewSandboxV2,
  bodyBytesMax: bodyBytesMax.createSandbox,
  responses: { 201: created },
  errors,
  async handle(app, { caller, body, signal, note }) {
    const sandbox = await createSandbox(app, caller.team, 'v2', body, signal);
    note(createdChange(sandbox));
    return { status: 201, body: sandboxView(app, sandbox) };
  },
});

function createdChange(sandbox: SandboxRecord): Change {
  const { templateId, buildId, endAtUs } = sandbox;
  return { target: `sandbox:${sandbox.sandboxId}`, after: { templateId, buildId, endAt: formatTime(endAtUs) } };
}
