import { openApiDocument } from './openapi.ts';
import { documentRoute, health } from './platform.ts';
import type { Route } from './route.ts';
import { connectSandboxV1, connectSandboxV2 } from './sandbox-connect.ts';
import { createSandboxV1, createSandboxV2 } from './sandbox-create.ts';
import { deleteSandbox } from './sandbox-kill.ts';
import { listSandboxesV1, listSandboxesV2 } from './sandbox-list.ts';
import { readSandbox } from './sandbox-read.ts';
import { refreshSandboxRoute, setSandboxTimeout } from './sandbox-timeout.ts';
import { readTemplateAlias } from './template-alias.ts';
import { listTemplatesV1, listTemplatesV2, readTemplateRoute } from './template-list.ts';

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
  listTemplatesV1,
  listTemplatesV2,
  readTemplateRoute,
  readTemplateAlias,
];

/** The OpenAPI document, as served and as committed in docs/openapi.json. */
export const document = openApiDocument(routes, interfaceVersion);
