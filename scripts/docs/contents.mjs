/**
 * The pages of the site by section, in the order of its navigation: `[source, title]`, the source relative to the
 * repository. A page of docs that is not listed here is an error of the build. The operations of the API follow.
 */
export const contents = [
  [
    'Begin',
    [
      ['docs/README.md', 'Documentation'],
      ['docs/guides/five-minutes.md', 'Start in five minutes'],
      ['docs/guides/from-e2b.md', 'Moving from E2B’s cloud'],
      ['README.md', 'Overview'],
    ],
  ],
  [
    'Guides for agent developers',
    [
      ['docs/guides/first-sandbox.md', 'First sandbox'],
      ['docs/guides/files.md', 'Files'],
      ['docs/guides/background-servers.md', 'Background servers'],
      ['docs/guides/pause.md', 'Pause and come back'],
      ['docs/guides/templates.md', 'Templates'],
      ['docs/guides/code-interpreter.md', 'Code interpreter'],
      ['docs/guides/network-rules.md', 'Network rules'],
      ['docs/guides/volumes.md', 'Volumes'],
      ['docs/guides/webhooks.md', 'Webhooks'],
    ],
  ],
  [
    'Guides for operators',
    [
      ['docs/operating.md', 'Install, TLS and DNS'],
      ['docs/guides/container.md', 'In a container'],
      ['docs/guides/teams.md', 'Teams and quotas'],
      ['docs/backup.md', 'Backup, restore, upgrade'],
      ['docs/guides/monitoring.md', 'Metrics and alerts'],
      ['docs/guides/sizing.md', 'Sizing'],
      ['docs/cluster.md', 'Several machines'],
      ['docs/kubernetes.md', 'Kubernetes'],
      ['SECURITY.md', 'Security'],
      ['docs/guides/troubleshooting.md', 'Troubleshooting'],
    ],
  ],
  [
    'Reference',
    [
      ['docs/platform-api.md', 'Platform API: errors, limits'],
      ['docs/configuration.md', 'Settings'],
      ['docs/command-line.md', 'Command line'],
      ['docs/dashboard.md', 'Dashboard'],
      ['docs/templates.md', 'Templates'],
      ['docs/code-interpreter.md', 'Code interpreter'],
      ['docs/network.md', 'Network: the way out'],
      ['docs/edge.md', 'Edge: the way in'],
      ['docs/pause.md', 'Pause, fork, snapshot'],
      ['docs/volumes.md', 'Volumes'],
      ['docs/logs.md', 'Logs'],
      ['docs/metrics.md', 'Metrics'],
      ['docs/events.md', 'Events and webhooks'],
      ['docs/inside.md', 'Inside a sandbox'],
      ['docs/compatibility.md', 'Compatibility'],
      ['docs/drivers.md', 'Drivers'],
      ['docs/seccomp.md', 'System calls'],
      ['docs/hosts.md', 'Hosts'],
      ['docs/safety.md', 'Safety'],
      ['docs/security-tests.md', 'Security tests'],
      ['docs/proof.md', 'Proof'],
      ['docs/performance.md', 'Performance'],
      ['docs/glossary.md', 'Glossary'],
    ],
  ],
  [
    'Inside the project',
    [
      ['ARCHITECTURE.md', 'Architecture'],
      ['CONTRIBUTING.md', 'Contributing'],
      ['CHANGELOG.md', 'Changelog'],
    ],
  ],
];

/** Pages that other pages link to and the navigation does not list. */
export const unlisted = [
  ['docs/performance/agent.md', 'Performance of the agent'],
  ['docs/performance/builds.md', 'Performance of builds'],
  ['docs/performance/cluster-real.md', 'Performance of a cluster beside one machine'],
  ['docs/performance/cluster-scale.md', 'Performance of a large cluster'],
  ['docs/performance/edge.md', 'Performance of the edge'],
  ['docs/performance/egress.md', 'Performance of the way out'],
  ['docs/performance/metrics.md', 'Performance of metrics'],
  ['docs/performance/table.md', 'Performance: all figures'],
  ['docs/performance/history.md', 'Performance: whole runs'],
];

/** Where a source is on the site; undefined: it is no page. Other files keep their path below docs. */
export function placeOf(source) {
  if (source === 'docs/README.md') return 'index.html';
  if (source === 'README.md') return 'overview.html';
  if (!source.endsWith('.md')) return source.startsWith('docs/') ? source.slice('docs/'.length) : undefined;
  const page = source.replace(/\.md$/, '.html');
  return page.startsWith('docs/') ? page.slice('docs/'.length) : page.includes('/') ? undefined : page.toLowerCase();
}
