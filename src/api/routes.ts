import { createAccessTokenRoute, deleteAccessTokenRoute } from './credential/http/access-tokens.ts';
import {
  cancelTeamBuilds,
  createTeamKeyAsAdmin,
  deleteTeamKeyAsAdmin,
  killTeamSandboxes,
  readRunningCounts,
} from './operator/http/team-actions.ts';
import { readAuditRoute, readTeamAuditRoute } from './event/http/audit.ts';
import {
  adoptSandboxRoute,
  adoptVolumeRoute,
  discardSandboxRoute,
  discardVolumeRoute,
  forgetUnknownRoute,
  listOrphansRoute,
} from './operator/http/orphans.ts';
import { createTeamAsAdmin, listTeamsAsAdmin, updateTeamAsAdmin } from './operator/http/teams.ts';
import {
  addMemberAsAdmin,
  createTokenAsAdmin,
  createUserAsAdmin,
  listUsersAsAdmin,
  removeMemberAsAdmin,
  updateUserAsAdmin,
} from './operator/http/users.ts';
import {
  createApiKeyRoute,
  deleteApiKeyRoute,
  listApiKeysRoute,
  renameApiKeyRoute,
} from './credential/http/api-keys.ts';
import { rebuildTemplateRoute, registerBuildV1, registerBuildV2, registerBuildV3 } from './build/http/register.ts';
import { cancelBuildRoute } from './build/http/cancel.ts';
import { startBuildRoute, startBuildV1 } from './build/http/start.ts';
import { streamBuildLogs } from './build/http/log-stream.ts';
import { readBuildLogsRoute, readBuildStatus } from './build/http/status.ts';
import { listEventsRoute, listSandboxEventsRoute, readSandboxEventsRoute } from './event/http/events.ts';
import { readOperatorMetrics } from './metrics/http/operator.ts';
import { forgetNodeRoute, inviteNodeRoute, joinNodeRoute, joinPodRoute } from './cluster/http/cluster.ts';
import { beginDrainRoute, readDrainRoute } from './operator/http/drain.ts';
import { examineRoute, listSettingsRoute } from './operator/http/installation.ts';
import { readNodeMetricsRoute, readOverviewRoute } from './operator/http/overview.ts';
import { listStuckRoute } from './operator/http/stuck.ts';
import { listNodesRoute, readNodeRoute, updateNodeRoute } from './operator/http/nodes.ts';
import { openApiDocument } from './http/openapi.ts';
import { discoveryRoute, jwksRoute } from './identity/http/discovery.ts';
import { readLimitsRoute } from './operator/http/team-use.ts';
import { documentRoute, health } from './operator/http/platform.ts';
import type { Route } from './http/route.ts';
import type { ApiParts } from './parts.ts';
import { connectSandboxV1, connectSandboxV2 } from './sandbox/http/connect.ts';
import { createSandboxV1, createSandboxV2 } from './sandbox/http/create.ts';
import { forkSandboxRoute } from './sandbox/http/fork.ts';
import { deleteSandbox } from './sandbox/http/kill.ts';
import { streamSandboxLogs } from './sandbox/http/log-stream.ts';
import { readSandboxLogsV1, readSandboxLogsV2 } from './sandbox/http/logs.ts';
import { pauseSandboxRoute } from './sandbox/http/pause.ts';
import { resumeSandboxRoute } from './sandbox/http/resume.ts';
import { createSnapshotRoute, listSnapshotsRoute } from './snapshot/http/snapshots.ts';
import { listSandboxesV1, listSandboxesV2 } from './sandbox/http/list.ts';
import { readSandboxesMetrics, readSandboxMetrics, readSandboxTraffic } from './metrics/http/sandbox.ts';
import { networkVerdictRoute, updateSandboxNetwork } from './sandbox/http/network.ts';
import { readSandbox } from './sandbox/http/read.ts';
import { refreshSandboxRoute, setSandboxTimeout } from './sandbox/http/timeout.ts';
import {
  createSecretRoute,
  deleteSecretRoute,
  listSecretsRoute,
  readSecretRoute,
  updateSecretRoute,
} from './secret/http/secrets.ts';
import { listSessionsRoute, revokeSessionRoute } from './session/http/sessions.ts';
import {
  changePasswordRoute,
  createAccountRoute,
  createInvitedAccountRoute,
  joinTeamRoute,
  proveSessionRoute,
} from './session/http/account.ts';
import { beginAtProviderRoute, readProviderRoute } from './session/http/provider.ts';
import { createSignInLinkRoute, readSessionRoute, signInRoute, signOutRoute } from './session/http/sign-in.ts';
import { streamEventsRoute } from './event/http/stream.ts';
import { readHighestTeamMetricRoute, readTeamMetricsRoute, readTemplateUseRoute } from './metrics/http/team.ts';
import { createInvitationRoute, deleteInvitationRoute, listInvitationsRoute } from './team/http/invitations.ts';
import { changeMemberRoute, listMembersRoute, removeMemberRoute } from './team/http/members.ts';
import { listTeams } from './team/http/teams.ts';
import { readTemplateAlias } from './template/http/alias.ts';
import { deleteTemplateRoute, updateTemplateV1Route, updateTemplateV2Route } from './template/http/change.ts';
import { offerFileUpload, putTemplateFiles } from './build/http/files.ts';
import {
  listDefaultTemplatesRoute,
  listTemplatesV1,
  listTemplatesV2,
  readTemplateContentRoute,
  readTemplateRoute,
} from './template/http/list.ts';
import {
  countTagsRoute,
  listTagAssignmentsRoute,
  listTagGroupsRoute,
  tagExistsRoute,
} from './template/http/tag-assignments.ts';
import { assignTagsRoute, deleteTagsRoute, listTagsRoute } from './template/http/tags.ts';
import {
  createWebhookRoute,
  deleteWebhookRoute,
  listDeliveriesRoute,
  listWebhooksRoute,
  readWebhookRoute,
  redeliverRoute,
  updateWebhookRoute,
} from './webhook/http/webhooks.ts';
import {
  changeVolumeEntry,
  listVolumeDirectory,
  makeVolumeDirectory,
  readVolumeFile,
  removeVolumeEntry,
  statVolumeEntry,
  writeVolumeFile,
} from './volume/http/content.ts';
import {
  createVolumeRoute,
  deleteVolumeRoute,
  listVolumesRoute,
  readVolumesUseRoute,
  readVolumeRoute,
  restoreVolumeRoute,
} from './volume/http/volumes.ts';

/** The version of the interface, as its description carries it. */
const interfaceVersion = '0.1.0';

/** Every operation of the REST API. */
export const routes: readonly Route<ApiParts>[] = [
  discoveryRoute,
  jwksRoute,
  health,
  documentRoute(() => document),
  createSandboxV1,
  createSandboxV2,
  listSandboxesV1,
  listSandboxesV2,
  readSandbox,
  deleteSandbox,
  setSandboxTimeout,
  refreshSandboxRoute,
  connectSandboxV1,
  connectSandboxV2,
  pauseSandboxRoute,
  resumeSandboxRoute,
  forkSandboxRoute,
  createSnapshotRoute,
  listSnapshotsRoute,
  updateSandboxNetwork,
  networkVerdictRoute,
  readSandboxMetrics,
  readSandboxesMetrics,
  readSandboxTraffic,
  readSandboxLogsV1,
  readSandboxLogsV2,
  streamSandboxLogs,
  listTemplatesV1,
  listTemplatesV2,
  listDefaultTemplatesRoute,
  readTemplateRoute,
  readTemplateContentRoute,
  readTemplateAlias,
  registerBuildV1,
  registerBuildV2,
  registerBuildV3,
  rebuildTemplateRoute,
  startBuildV1,
  startBuildRoute,
  cancelBuildRoute,
  readBuildStatus,
  readBuildLogsRoute,
  streamBuildLogs,
  offerFileUpload,
  putTemplateFiles,
  updateTemplateV1Route,
  updateTemplateV2Route,
  deleteTemplateRoute,
  assignTagsRoute,
  deleteTagsRoute,
  listTagsRoute,
  countTagsRoute,
  tagExistsRoute,
  listTagGroupsRoute,
  listTagAssignmentsRoute,
  readProviderRoute,
  beginAtProviderRoute,
  signInRoute,
  readSessionRoute,
  signOutRoute,
  listSessionsRoute,
  revokeSessionRoute,
  proveSessionRoute,
  createAccountRoute,
  changePasswordRoute,
  createInvitedAccountRoute,
  joinTeamRoute,
  createSignInLinkRoute,
  listMembersRoute,
  changeMemberRoute,
  removeMemberRoute,
  listInvitationsRoute,
  createInvitationRoute,
  deleteInvitationRoute,
  listTeams,
  readTeamMetricsRoute,
  readHighestTeamMetricRoute,
  readTemplateUseRoute,
  listApiKeysRoute,
  createApiKeyRoute,
  renameApiKeyRoute,
  deleteApiKeyRoute,
  createAccessTokenRoute,
  deleteAccessTokenRoute,
  listNodesRoute,
  readNodeRoute,
  updateNodeRoute,
  readNodeMetricsRoute,
  joinNodeRoute,
  joinPodRoute,
  inviteNodeRoute,
  forgetNodeRoute,
  readDrainRoute,
  beginDrainRoute,
  examineRoute,
  listStuckRoute,
  readOverviewRoute,
  listSettingsRoute,
  killTeamSandboxes,
  cancelTeamBuilds,
  readRunningCounts,
  createTeamKeyAsAdmin,
  deleteTeamKeyAsAdmin,
  listTeamsAsAdmin,
  createTeamAsAdmin,
  updateTeamAsAdmin,
  listUsersAsAdmin,
  createUserAsAdmin,
  createTokenAsAdmin,
  updateUserAsAdmin,
  addMemberAsAdmin,
  removeMemberAsAdmin,
  listOrphansRoute,
  adoptSandboxRoute,
  discardSandboxRoute,
  adoptVolumeRoute,
  discardVolumeRoute,
  forgetUnknownRoute,
  readAuditRoute,
  readTeamAuditRoute,
  readLimitsRoute,
  readOperatorMetrics,
  listSecretsRoute,
  createSecretRoute,
  readSecretRoute,
  updateSecretRoute,
  deleteSecretRoute,
  listEventsRoute,
  streamEventsRoute,
  listSandboxEventsRoute,
  readSandboxEventsRoute,
  createWebhookRoute,
  listWebhooksRoute,
  readWebhookRoute,
  updateWebhookRoute,
  deleteWebhookRoute,
  listDeliveriesRoute,
  redeliverRoute,
  listVolumesRoute,
  readVolumesUseRoute,
  createVolumeRoute,
  readVolumeRoute,
  deleteVolumeRoute,
  restoreVolumeRoute,
  statVolumeEntry,
  changeVolumeEntry,
  removeVolumeEntry,
  listVolumeDirectory,
  makeVolumeDirectory,
  readVolumeFile,
  writeVolumeFile,
];

/** The OpenAPI document, as served and as committed in docs/openapi.json. */
export const document = openApiDocument(routes, interfaceVersion);
