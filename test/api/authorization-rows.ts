import { randomName } from '../../src/base/id.ts';
import type { Scene } from './authorization-scene.ts';

type Row = {
  /**
   * A request that succeeds for an entitled caller; made anew for each caller. `ids`: the IDs in it that name a thing
   * of the team.
   */
  request(scene: Scene): Promise<{ path: string; body?: unknown; ids?: string[] }>;
  success: number;
  /**
   * What a caller of another team gets: 404 or 403 for a thing of the team, otherwise the success of their own view.
   */
  foreign: number;
};

/** A row whose answer is the same for every team: its own view, or its own new thing. */
const own = (success: number, path: string, body?: () => unknown): Row => ({
  request: async () => ({ path, ...(body && { body: body() }) }),
  success,
  foreign: success,
});

const sandbox = (success: number, path: (id: string) => string, body?: unknown): Row => ({
  async request(scene) {
    const id = await scene.sandbox();
    return { path: path(id), body, ids: [id] };
  },
  success,
  foreign: 404,
});

const template = (
  success: number,
  foreign: number,
  path: (template: { alias: string; templateId: string }) => string,
  body?: unknown,
): Row => ({
  async request(scene) {
    const made = await scene.template();
    return { path: path(made), body, ids: [made.alias, made.templateId] };
  },
  success,
  foreign,
});

const build = (
  success: number,
  foreign: number,
  path: (build: { templateID: string; buildID: string }) => string,
  body?: unknown,
): Row => ({
  async request(scene) {
    const made = await scene.build();
    return { path: path(made), body, ids: [made.templateID, made.buildID] };
  },
  success,
  foreign,
});

/** A row about one thing, whose ID `make` gives. */
const thing = (
  success: number,
  make: (scene: Scene) => Promise<string>,
  request: (id: string) => { path: string; body?: unknown },
): Row => ({
  async request(scene) {
    const id = await make(scene);
    return { ...request(id), ids: [id] };
  },
  success,
  foreign: 404,
});

/** A row about the content of the volume that the callers' tokens are for. */
const content = (success: number, path: string, body?: unknown): Row => ({
  request: async scene => ({
    path: `/volumecontent/${await scene.contentVolume()}/${path}`,
    body,
    ids: [scene.volumeId],
  }),
  success,
  foreign: 403,
});

const operator = (success: number, path: (scene: Scene) => Promise<string> | string, body?: unknown): Row => ({
  request: async scene => ({ path: await path(scene), body }),
  success,
  foreign: 401,
});

const account = () => ({ name: 'New', email: `${randomName(12)}@example.com`, password: 'correct horse battery' });

/** One row per operation: a new operation without a row fails the suite. */
export const authorizationRows: Record<string, Row> = {
  getHealth: own(200, '/health'),
  getIdentityConfiguration: own(200, '/.well-known/openid-configuration'),
  getIdentityKeys: own(200, '/.well-known/jwks.json'),
  getOpenApi: own(200, '/openapi.json'),

  createSandbox: own(201, '/sandboxes', () => ({ templateID: 'base' })),
  createSandboxV2: own(201, '/v2/sandboxes', () => ({ templateID: 'base' })),
  listSandboxes: own(200, '/sandboxes'),
  listSandboxesV2: own(200, '/v2/sandboxes'),
  getSandbox: sandbox(200, id => `/sandboxes/${id}`),
  deleteSandbox: sandbox(204, id => `/sandboxes/${id}`),
  setSandboxTimeout: sandbox(204, id => `/sandboxes/${id}/timeout`, { timeout: 60 }),
  refreshSandbox: sandbox(204, id => `/sandboxes/${id}/refreshes`, {}),
  connectSandbox: sandbox(200, id => `/sandboxes/${id}/connect`, { timeout: 60 }),
  connectSandboxV2: sandbox(200, id => `/v2/sandboxes/${id}/connect`, {}),
  pauseSandbox: sandbox(204, id => `/sandboxes/${id}/pause`),
  resumeSandbox: thing(
    201,
    scene => scene.pausedSandbox(),
    id => ({ path: `/sandboxes/${id}/resume` }),
  ),
  forkSandbox: sandbox(201, id => `/sandboxes/${id}/fork`),
  createSnapshot: sandbox(201, id => `/sandboxes/${id}/snapshots`),
  listSnapshots: own(200, '/snapshots'),

  // About another team's sandbox there is nothing to report and nothing to find out.
  getSandboxMetrics: { ...sandbox(200, id => `/sandboxes/${id}/metrics`), foreign: 200 },
  getSandboxesMetrics: { ...sandbox(200, id => `/sandboxes/metrics?sandbox_ids=${id}`), foreign: 200 },
  getSandboxTraffic: sandbox(200, id => `/sandboxes/${id}/traffic`),
  getSandboxLogs: sandbox(200, id => `/sandboxes/${id}/logs`),
  getSandboxLogsV2: sandbox(200, id => `/v2/sandboxes/${id}/logs?direction=forward&level=warn&search=x`),
  streamSandboxLogs: sandbox(200, id => `/sandboxes/${id}/logs/stream?seconds=0&tail=5`),
  updateSandboxNetwork: sandbox(204, id => `/sandboxes/${id}/network`, { denyOut: ['0.0.0.0/0'] }),

  listTemplates: own(200, '/templates'),
  listTemplatesV2: own(200, '/v2/templates'),
  getTemplate: template(200, 404, ({ alias }) => `/templates/${alias}`),
  getTemplateContent: template(200, 404, ({ alias }) => `/templates/${alias}/content`),
  // This route exists to say "taken by another team".
  getTemplateAlias: template(200, 403, ({ alias }) => `/templates/aliases/${alias}`),
  updateTemplate: template(200, 404, ({ alias }) => `/templates/${alias}`, {}),
  updateTemplateV2: template(200, 404, ({ alias }) => `/v2/templates/${alias}`, {}),
  deleteTemplate: template(204, 404, ({ alias }) => `/templates/${alias}`),
  listDefaultTemplates: own(200, '/default-templates'),
  listTemplateTags: template(200, 404, ({ alias }) => `/templates/${alias}/tags`),
  countTemplateTags: template(200, 404, ({ alias }) => `/templates/${alias}/tags/count`),
  templateTagExists: template(200, 404, ({ alias }) => `/templates/${alias}/tags/exists?tag=default`),
  listTemplateTagGroups: template(200, 404, ({ alias }) => `/templates/${alias}/tags/groups`),
  listTemplateTagAssignments: template(200, 404, ({ alias }) => `/templates/${alias}/tags/default/assignments`),
  assignTemplateTags: thing(
    201,
    async scene => (await scene.template()).alias,
    alias => ({ path: '/templates/tags', body: { target: alias, tags: ['v1'] } }),
  ),
  deleteTemplateTags: thing(
    204,
    async scene => (await scene.template()).alias,
    alias => ({ path: '/templates/tags', body: { name: alias, tags: ['v1'] } }),
  ),
  createTemplate: own(202, '/templates', () => ({ dockerfile: 'FROM scratch', alias: `a${randomName(12)}` })),
  createTemplateV2: own(202, '/v2/templates', () => ({ alias: `a${randomName(12)}` })),
  createTemplateV3: own(202, '/v3/templates', () => ({ name: `a${randomName(12)}` })),
  rebuildTemplate: template(202, 404, ({ templateId }) => `/templates/${templateId}`, { dockerfile: 'FROM scratch' }),
  startTemplateBuild: {
    request: async scene => {
      const { templateID, buildID } = await scene.dockerBuild();
      return { path: `/templates/${templateID}/builds/${buildID}`, ids: [templateID, buildID] };
    },
    success: 202,
    foreign: 404,
  },
  startTemplateBuildV2: build(202, 404, ({ templateID, buildID }) => `/v2/templates/${templateID}/builds/${buildID}`, {
    fromImage: 'debian:12',
  }),
  cancelTemplateBuild: build(
    204,
    404,
    ({ templateID, buildID }) => `/templates/${templateID}/builds/${buildID}/cancel`,
  ),
  // The contract requires 400 for an unknown build.
  getTemplateBuildStatus: build(
    200,
    400,
    ({ templateID, buildID }) => `/templates/${templateID}/builds/${buildID}/status`,
  ),
  getTemplateBuildLogs: build(200, 404, ({ templateID, buildID }) => `/templates/${templateID}/builds/${buildID}/logs`),
  streamTemplateBuildLogs: build(
    200,
    404,
    ({ templateID, buildID }) => `/templates/${templateID}/builds/${buildID}/logs/stream?seconds=0`,
  ),
  getTemplateFileUpload: template(201, 404, ({ templateId }) => `/templates/${templateId}/files/${'0'.repeat(64)}`),
  // Its signature is the credential.
  putTemplateFiles: {
    request: async scene => ({ path: await scene.uploadPath(), body: 'archive' }),
    success: 201,
    foreign: 201,
  },

  listTeams: own(200, '/teams'),
  getTeamMetrics: {
    request: async ({ team }) => ({ path: `/teams/${team.teamId}/metrics`, ids: [team.teamId] }),
    success: 200,
    foreign: 403,
  },
  getTeamMetricsMax: {
    request: async ({ team }) => ({
      path: `/teams/${team.teamId}/metrics/max?metric=concurrent_sandboxes`,
      ids: [team.teamId],
    }),
    success: 200,
    foreign: 403,
  },
  getTeamTemplateUse: {
    request: async ({ team }) => ({ path: `/teams/${team.teamId}/metrics/templates`, ids: [team.teamId] }),
    success: 200,
    foreign: 403,
  },
  listApiKeys: own(200, '/api-keys'),
  createApiKey: own(201, '/api-keys', () => ({ name: 'new' })),
  renameApiKey: thing(
    200,
    scene => scene.apiKey(),
    id => ({ path: `/api-keys/${id}`, body: { name: 'x' } }),
  ),
  deleteApiKey: thing(
    204,
    scene => scene.apiKey(),
    id => ({ path: `/api-keys/${id}` }),
  ),
  createAccessToken: own(201, '/access-tokens', () => ({ name: 'new' })),
  deleteAccessToken: thing(
    204,
    scene => scene.accessToken(),
    id => ({ path: `/access-tokens/${id}` }),
  ),

  listSecrets: own(200, '/secrets'),
  createSecret: own(201, '/secrets', () => ({ name: `n${randomName(12)}`, value: 'x' })),
  getSecret: thing(
    200,
    scene => scene.secret(),
    id => ({ path: `/secrets/${id}` }),
  ),
  updateSecret: thing(
    200,
    scene => scene.secret(),
    id => ({ path: `/secrets/${id}`, body: { value: 'y' } }),
  ),
  deleteSecret: thing(
    204,
    scene => scene.secret(),
    id => ({ path: `/secrets/${id}` }),
  ),

  listEvents: own(200, '/events'),
  listTeamSandboxEvents: own(200, '/events/sandboxes'),
  // For another team's sandbox, as for an unknown one: nothing.
  listSandboxEvents: { ...sandbox(200, id => `/events/sandboxes/${id}`), foreign: 200 },
  createWebhook: own(201, '/events/webhooks', () => ({
    name: 'new',
    url: 'https://receiver.example/',
    events: ['sandbox.lifecycle.killed'],
    enabled: false,
  })),
  listWebhooks: own(200, '/events/webhooks'),
  getWebhook: thing(
    200,
    scene => scene.webhook(),
    id => ({ path: `/events/webhooks/${id}` }),
  ),
  updateWebhook: thing(
    200,
    scene => scene.webhook(),
    id => ({ path: `/events/webhooks/${id}`, body: { name: 'x' } }),
  ),
  deleteWebhook: thing(
    200,
    scene => scene.webhook(),
    id => ({ path: `/events/webhooks/${id}` }),
  ),
  listWebhookDeliveries: thing(
    200,
    scene => scene.webhook(),
    id => ({ path: `/events/webhooks/${id}/deliveries` }),
  ),
  redeliverWebhookEvent: {
    async request(scene) {
      const { webhookId, eventId } = await scene.delivery();
      return { path: `/events/webhooks/${webhookId}/deliveries/${eventId}/redeliver`, ids: [webhookId] };
    },
    success: 202,
    foreign: 404,
  },
  listVolumes: own(200, '/volumes'),
  getVolumesUse: own(200, '/volumes/use'),
  createVolume: own(201, '/volumes', () => ({ name: `v${randomName(12)}` })),
  getVolume: thing(
    200,
    scene => scene.volume(),
    id => ({ path: `/volumes/${id}` }),
  ),
  deleteVolume: thing(
    204,
    scene => scene.volume(),
    id => ({ path: `/volumes/${id}` }),
  ),
  // There is only one machine, and it is not lost.
  restoreVolume: thing(
    400,
    scene => scene.volume(),
    id => ({ path: `/volumes/${id}/restore` }),
  ),
  getVolumePath: content(200, 'path?path=/'),
  updateVolumePath: content(200, 'path?path=/', {}),
  deleteVolumePath: content(204, 'path?path=/there'),
  listVolumeDirectory: content(200, 'dir?path=/'),
  createVolumeDirectory: content(201, 'dir?path=/there&force=true'),
  getVolumeFile: content(200, 'file?path=/file'),
  putVolumeFile: content(201, 'file?path=/file&force=true', 'content'),

  listNodes: operator(200, () => '/nodes'),
  getNode: operator(200, () => '/nodes/node-1'),
  updateNode: operator(204, () => '/nodes/node-1', { status: 'ready' }),
  // A single machine is no cluster, and says so to admitted callers.
  joinCluster: {
    request: async () => ({
      path: '/cluster/join',
      body: { tokenID: 'a', nodeID: 'node-2', address: 'a:1', publicKey: 'a', proof: 'a' },
    }),
    success: 400,
    foreign: 400,
  },
  joinClusterAsPod: {
    request: async () => ({
      path: '/cluster/join-pod',
      body: { token: 'a', nodeID: 'node-2', address: 'a:1', publicKey: 'a' },
    }),
    success: 400,
    foreign: 400,
  },
  adminInviteNode: operator(400, () => '/admin/cluster/invites'),
  adminExamine: operator(200, () => '/admin/doctor'),
  getNodeMetrics: operator(200, () => '/nodes/node-1/metrics'),
  adminReadOverview: operator(200, () => '/admin/overview'),
  adminListStuckSandboxes: operator(200, () => '/admin/sandboxes/stuck'),
  adminListSettings: operator(200, () => '/admin/settings'),
  adminReadDrain: operator(404, () => '/admin/nodes/node-2/drain'),
  adminBeginDrain: operator(404, () => '/admin/nodes/node-2/drain', { mode: 'wait' }),
  adminForgetNode: operator(400, () => '/admin/nodes/node-2'),
  adminKillTeamSandboxes: operator(200, ({ team }) => `/admin/teams/${team.teamId}/sandboxes/kill`),
  adminCancelTeamBuilds: operator(200, ({ team }) => `/admin/teams/${team.teamId}/builds/cancel`),
  adminGetRunningCounts: operator(200, () => '/admin/sandboxes/running-counts'),
  adminCreateApiKey: operator(201, ({ team }) => `/admin/teams/${team.teamId}/api-keys`, { name: 'new' }),
  adminDeleteApiKey: operator(204, async scene => `/admin/teams/${scene.team.teamId}/api-keys/${await scene.apiKey()}`),
  adminListTeams: operator(200, () => '/admin/teams'),
  adminCreateTeam: {
    request: async () => ({ path: '/admin/teams', body: { name: 'New', slug: randomName(12) } }),
    success: 201,
    foreign: 401,
  },
  adminUpdateTeam: operator(200, ({ team }) => `/admin/teams/${team.teamId}`, { name: 'Default' }),
  adminListUsers: operator(200, () => '/admin/users'),
  adminCreateUser: operator(201, () => '/admin/users', { name: 'New' }),
  adminCreateAccessToken: operator(201, ({ user }) => `/admin/users/${user.userId}/access-tokens`, { name: 'new' }),
  adminUpdateUser: operator(204, async scene => `/admin/users/${await scene.newUser()}`, { operator: false }),
  adminAddMember: operator(204, async scene => `/admin/teams/${scene.team.teamId}/members/${await scene.newUser()}`),
  adminRemoveMember: operator(
    204,
    async scene => `/admin/teams/${scene.team.teamId}/members/${await scene.newMember()}`,
  ),
  getMetrics: operator(200, () => '/metrics'),
  adminListOrphans: operator(200, () => '/admin/orphans'),
  adminAdoptSandbox: {
    request: async scene => ({
      path: `/admin/orphans/sandboxes/${await scene.orphanSandbox()}/adopt`,
      body: { teamID: scene.team.teamId },
    }),
    success: 204,
    foreign: 401,
  },
  adminDiscardSandbox: operator(204, async scene => `/admin/orphans/sandboxes/${await scene.orphanSandbox()}`),
  adminAdoptVolume: {
    request: async scene => ({
      path: `/admin/orphans/volumes/${await scene.orphanVolume()}/adopt/${scene.team.teamId}`,
      body: { name: randomName(12) },
    }),
    success: 204,
    foreign: 401,
  },
  adminDiscardVolume: operator(204, async scene => `/admin/orphans/volumes/${await scene.orphanVolume()}`),
  adminForgetUnknown: operator(204, () => '/admin/orphans/forget-unknown'),
  adminGetAudit: operator(200, () => '/admin/audit'),
  adminCreateSignInLink: operator(201, () => '/admin/sign-in-links', {}),
  // Nobody is signed in while signing in; what it accepts and refuses has tests of its own.
  proveSession: own(400, '/session/proof', () => ({})),
  createOperatorAccount: own(201, '/session/account', account),
  changePassword: own(201, '/session/password', () => ({ password: 'correct horse battery' })),
  createInvitedAccount: own(400, '/session/invited', () => ({})),
  joinTeam: own(400, '/session/teams', () => ({})),
  getNetworkVerdict: own(200, '/network/verdict', () => ({ host: 'example.com' })),
  getLimits: own(200, '/limits'),
  getAudit: own(200, '/audit'),
  listMembers: own(200, '/members'),
  updateMember: thing(
    204,
    scene => scene.newMember(),
    id => ({ path: `/members/${id}`, body: { role: 'viewer' } }),
  ),
  deleteMember: thing(
    204,
    scene => scene.newMember(),
    id => ({ path: `/members/${id}` }),
  ),
  listInvitations: own(200, '/invitations'),
  createInvitation: own(201, '/invitations', () => ({ role: 'viewer' })),
  deleteInvitation: thing(
    204,
    scene => scene.invitation(),
    id => ({ path: `/invitations/${id}` }),
  ),
  getSignInProvider: own(200, '/session/provider'),
  beginSignInAtProvider: own(400, '/session/provider', () => ({})),
  signIn: own(400, '/session', () => ({})),
  getSession: own(200, '/session'),
  signOut: own(204, '/session'),
  listSessions: own(200, '/sessions'),
  revokeSession: thing(
    204,
    scene => scene.session(),
    id => ({ path: `/sessions/${id}` }),
  ),
  streamEvents: own(200, '/events/stream?seconds=0'),
};
