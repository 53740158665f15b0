import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import type { AnyRoute } from '@tanstack/react-router';
import { readFilesSearch } from '../files/search.ts';
import { readAuditSearch } from './audit-search.ts';
import { Logs } from './sandbox/logs/logs.tsx';
import { readLogsSearch } from './sandbox/logs/logs-search.ts';
import { Overview } from './sandbox/overview.tsx';
import { readTerminalSearch } from './sandbox/terminal/terminal-search.ts';
import { readMetricsSearch } from './sandbox/metrics/metrics-search.ts';
import { SandboxPage } from './sandbox/sandbox.tsx';
import { readEventsSearch } from './team/events.tsx';
import { readUsageSearch } from './team/usage-search.ts';
import { readBuildSearch } from './templates/build-search.ts';
import { readTemplatesSearch } from './templates/templates-search.ts';

type Search = (raw: Record<string, unknown>) => object;
type Loader = Parameters<typeof lazyRouteComponent>[0];

/** The pages behind the first one, below `shell`. Each is loaded when it is first opened. */
export function pageRoutes(shell: AnyRoute): AnyRoute[] {
  const below =
    (parent: AnyRoute) =>
    (path: string, load: Loader, name: string, validateSearch: Search = () => ({})) =>
      createRoute({ getParentRoute: () => parent, path, component: lazyRouteComponent(load, name), validateSearch });
  const page = below(shell);
  const sandbox = createRoute({ getParentRoute: () => shell, path: '/sandboxes/$sandboxId', component: SandboxPage });
  const tab = below(sandbox);
  return [
    sandbox.addChildren([
      createRoute({ getParentRoute: () => sandbox, path: '/', component: Overview }),
      createRoute({ getParentRoute: () => sandbox, path: 'logs', component: Logs, validateSearch: readLogsSearch }),
      tab('terminal', () => import('./sandbox/terminal/terminal.tsx'), 'Terminal', readTerminalSearch),
      tab('files', () => import('./sandbox/files.tsx'), 'SandboxFiles', readFilesSearch),
      tab('metrics', () => import('./sandbox/metrics/metrics.tsx'), 'Metrics', readMetricsSearch),
      tab('network', () => import('./sandbox/network.tsx'), 'Network'),
    ]),
    page('/templates', () => import('./templates/templates.tsx'), 'Templates', readTemplatesSearch),
    page('/templates/$templateId', () => import('./templates/template.tsx'), 'TemplatePage'),
    page('/templates/$templateId/builds/$buildId', () => import('./templates/build.tsx'), 'BuildPage', readBuildSearch),
    page('/snapshots', () => import('./team/snapshots.tsx'), 'Snapshots'),
    page('/volumes', () => import('./team/volumes.tsx'), 'Volumes'),
    page('/volumes/$volumeId', () => import('./team/volume-content.tsx'), 'VolumeContent', readFilesSearch),
    page('/secrets', () => import('./team/secrets.tsx'), 'Secrets'),
    page('/events', () => import('./team/events.tsx'), 'Events', readEventsSearch),
    page('/usage', () => import('./team/usage.tsx'), 'Usage', readUsageSearch),
    page('/keys', () => import('./team/keys.tsx'), 'Keys'),
    page('/members', () => import('./team/members.tsx'), 'Members'),
    page('/audit', () => import('./audit.tsx'), 'TeamAudit', readAuditSearch),
    page('/webhooks', () => import('./team/webhooks.tsx'), 'Webhooks'),
    page('/account', () => import('./account.tsx'), 'Account'),
    page('/operator', () => import('./operator/overview.tsx'), 'OperatorOverview'),
    page('/operator/nodes', () => import('./operator/nodes/nodes.tsx'), 'Nodes'),
    page('/operator/nodes/$nodeId', () => import('./operator/nodes/node.tsx'), 'NodePage'),
    page('/operator/teams', () => import('./operator/teams.tsx'), 'Teams'),
    page('/operator/leftovers', () => import('./operator/leftovers.tsx'), 'Leftovers'),
    page('/operator/doctor', () => import('./operator/doctor.tsx'), 'Doctor'),
    page('/operator/settings', () => import('./operator/settings.tsx'), 'Settings'),
    page('/operator/audit', () => import('./audit.tsx'), 'Audit', readAuditSearch),
  ];
}
