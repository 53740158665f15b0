import { createAccessTokenRoute, deleteAccessTokenRoute } from './access-tokens.ts';
import { cancelTeamBuilds, createTeamKeyAsAdmin, deleteTeamKeyAsAdmin, killTeamSandboxes, readRunningCounts } from './admin.ts';
import { readAuditRoute } from './audit.ts';
import { adoptSandboxRoute, adoptVolumeRoute, discardSandboxRoute, discardVolumeRoute, forgetUnknownRoute, listOrphansRoute } from './orphans.ts';
import { createTeamAsAdmin, listTeamsAsAdmin, updateTeamAsAdmin } from './admin-teams.ts';
import { addMemberAsAdmin, createTokenAsAdmin, createUserAsAdmin, listUsersAsAdmin, removeMemberAsAdmin } from './admin-users.ts';
import { createApiKeyRoute, deleteApiKeyRoute, listApiKeysRoute, renameApiKeyRoute } from './api-keys.ts';
import { rebuildTemplateRoute, registerBuildV1, registerBuildV2, registerBuildV3 } from './build-register.ts';
import { cancelBuildRoute } from './build-cancel.ts';
import { startBuildRoute, startBuildV1 } from './build-start.ts';
import { readBuildLogsRoute, readBuildStatus } from './build-status.ts';
import { listEventsRoute, listSandboxEventsRoute, readSandboxEventsRoute } from './events.ts';
import { readOperatorMetrics } from './metrics.ts';
import { listNodesRoute, readNodeRoute, updateNodeRoute } from './nodes.ts';
import { openApiDocument } from './openapi.ts';
import { documentRoute, health } from './platform.ts';
import type { Route } from './route.ts';
import { connectSandboxV1, connectSandboxV2 } from './sandbox-connect.ts';
import { createSandboxV1, createSandboxV2 } from './sandbox-create.ts';
import { forkSandboxRoute } from './sandbox-fork.ts';
import { deleteSandbox } from './sandbox-kill.ts';
import { readSandboxLogsV1, readSandboxLogsV2 } from './sandbox-logs.ts';
import { pauseSandboxRoute } from './sandbox-pause.ts';
import { resumeSandboxRoute } from './sandbox-resume.ts';
import { createSnapshotRoute, listSnapshotsRoute } from './sandbox-snapshot.ts';
import { listSandboxesV1, listSandboxesV2 } from './sandbox-list.ts';
import { readSandboxesMetrics, readSandboxMetrics, readSandboxTraffic } from './sandbox-metrics.ts';
import { updateSandboxNetwork } from './sandbox-network.ts';
import { readSandbox } from './sandbox-read.ts';
import { refreshSandboxRoute, setSandboxTimeout } from './sandbox-timeout.ts';
import { createSecretRoute, deleteSecretRoute, listSecretsRoute, readSecretRoute, updateSecretRoute } from './secrets.ts';
import { readHighestTeamMetricRoute, readTeamMetricsRoute } from './team-metrics.ts';
import { listTeams } from './teams.ts';
import { readTemplateAlias } from './template-alias.ts';
import { deleteTemplateRoute, updateTemplateV1Route, updateTemplateV2Route } from './template-change.ts';
import { offerFileUpload, putTemplateFiles } from './template-files.ts';
import { listTemplatesV1, listTemplatesV2, readTemplateRoute } from './template-list.ts';
import { assignTagsRoute, deleteTagsRoute, listTagsRoute } from './template-tags.ts';
import { createWebhookRoute, deleteWebhookRoute, listDeliveriesRoute, listWebhooksRoute, readWebhookRoute, redeliverRoute, updateWebhookRoute } from './webhooks.ts';
import { changeVolumeEntry, listVolumeDirectory, makeVolumeDirectory, readVolumeFile, removeVolumeEntry, statVolumeEntry, writeVolumeFile } from './volume-content.ts';
import { createVolumeRoute, deleteVolumeRoute, listVolumesRoute, readVolumeRoute } from './volumes.ts';

/** The version of the interface, as its description carries it. */
const interfaceVersion = '0.1.0';

/** Every operation of the REST API. */
export const routes: readonly Route[] = [
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
  readSandboxMetrics,
  readSandboxesMetrics,
  readSandboxTraffic,
  readSandboxLogsV1,
  readSandboxLogsV2,
  listTemplatesV1,
  listTemplatesV2,
  readTemplateRoute,
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
  offerFileUpload,
  putTemplateFiles,
  updateTemplateV1Route,
  updateTemplateV2Route,
  deleteTemplateRoute,
  assignTagsRoute,
  deleteTagsRoute,
  listTagsRoute,
  listTeams,
  readTeamMetricsRoute,
  readHighestTeamMetricRoute,
  listApiKeysRoute,
  createApiKeyRoute,
  renameApiKeyRoute,
  deleteApiKeyRoute,
  createAccessTokenRoute,
  deleteAccessTokenRoute,
  listNodesRoute,
  readNodeRoute,
  updateNodeRoute,
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
  addMemberAsAdmin,
  removeMemberAsAdmin,
  listOrphansRoute,
  adoptSandboxRoute,
  discardSandboxRoute,
  adoptVolumeRoute,
  discardVolumeRoute,
  forgetUnknownRoute,
  readAuditRoute,
  readOperatorMetrics,
  listSecretsRoute,
  createSecretRoute,
  readSecretRoute,
  updateSecretRoute,
  deleteSecretRoute,
  listEventsRoute,
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
  createVolumeRoute,
  readVolumeRoute,
  deleteVolumeRoute,
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
