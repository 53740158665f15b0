import type { Static } from '@sinclair/typebox';
import {
  CreateHeaders,
  NewSandbox,
  NewSandboxV2,
  Sandbox,
  defaultTimeoutSeconds,
} from '../../../protocol/api/sandbox.ts';
import { deriveToken } from '../../../base/crypto/secret.ts';
import { formatTime } from '../../../base/time.ts';
import { createSandboxOnce } from '../workflows/create/once.ts';
import { createSandbox } from '../workflows/create/create.ts';
import type { NewSandboxRequest } from '../workflows/create/create.ts';
import { bodyBytesMax } from '../../http/body.ts';
import { route } from '../../http/route.ts';
import { sandboxView } from './view.ts';
import type { Change } from '../../event/record.ts';
import { defaultOptions, type SandboxRecord } from '../record.ts';
import type { TeamRecord } from '../../team/record.ts';
import type { CreateDeps } from '../workflows/create/create.ts';

/** What both versions have in common. */
const createRoute = {
  method: 'POST',
  auth: 'team',
  bodyBytesMax: bodyBytesMax.createSandbox,
  headers: CreateHeaders,
  // A running sandbox ends with the power, whatever is on the disk.
  durable: false,
  responses: { 201: { description: 'The sandbox runs and its agent accepts requests', schema: Sandbox } },
  errors: [404, 409, 429, 504],
} as const;

/** `POST /sandboxes` */
export const createSandboxV1 = route({
  ...createRoute,
  operationId: 'createSandbox',
  path: '/sandboxes',
  summary: 'Create a sandbox, secured only when asked for',
  body: NewSandbox,
  async handle(deps: CreateDeps, input) {
    return { status: 201, body: await counted(deps, create(deps, input, 'v1')) };
  },
});

/** `POST /v2/sandboxes` */
export const createSandboxV2 = route({
  ...createRoute,
  operationId: 'createSandboxV2',
  path: '/v2/sandboxes',
  summary: 'Create a sandbox, always secured',
  body: NewSandboxV2,
  async handle(deps: CreateDeps, input) {
    return { status: 201, body: await counted(deps, create(deps, input, 'v2')) };
  },
});

type CreateInput = {
  caller: { team: TeamRecord };
  body: NewSandbox;
  headers: Static<typeof CreateHeaders>;
  signal: AbortSignal;
  audit(change: Change): void;
};

/** Successful ones are counted where they succeed. */
async function counted<T>({ measures }: CreateDeps, creation: Promise<T>): Promise<T> {
  try {
    return await creation;
  } catch (error) {
    measures.notCreated(error);
    throw error;
  }
}

async function create(
  deps: CreateDeps,
  { caller: { team }, body, headers, signal, audit }: CreateInput,
  version: 'v1' | 'v2',
): Promise<Sandbox> {
  const asked = requestOf(body, version);
  const isDurabilityUsual = body.autoPause === true && body.autoPauseDurability === undefined;
  const request = { ...asked, isDurabilityUsual };
  const key = headers['idempotency-key'];
  if (key === undefined) {
    const sandbox = await createSandbox(deps, team, request, signal);
    audit(createdChange(sandbox));
    return sandboxView(deps.seed, sandbox);
  }
  // Derived from the seed, so that a reader of the database can't guess requests.
  const requestDigest = deriveToken(deps.seed, `create ${JSON.stringify(asked)}`);
  const sandbox = await createSandboxOnce(deps, team, request, { key, requestDigest }, signal);
  audit({ target: `sandbox:${sandbox.sandboxId}`, after: { templateId: sandbox.templateId } });
  return sandboxView(deps.seed, sandbox);
}

/**
 * The request in the platform's own words, with the defaults of its version. Members with the same name and shape on
 * the wire pass through unchanged.
 */
function requestOf(body: NewSandbox, version: 'v1' | 'v2'): NewSandboxRequest {
  const { templateID, volumeMounts = [], timeout, secure, autoResume, allow_internet_access, ...same } = body;
  return {
    template: templateID,
    volumeMounts,
    options: {
      timeoutSeconds: timeout ?? defaultTimeoutSeconds[version],
      secure: version === 'v2' || secure === true,
      ...defaultOptions,
      ...same,
      autoResume: autoResume?.enabled ?? defaultOptions.autoResume,
      allowInternetAccess: allow_internet_access ?? defaultOptions.allowInternetAccess,
    },
  };
}

function createdChange(sandbox: SandboxRecord): Change {
  const { templateId, buildId, endAtUs } = sandbox;
  return { target: `sandbox:${sandbox.sandboxId}`, after: { templateId, buildId, endAt: formatTime(endAtUs) } };
}
