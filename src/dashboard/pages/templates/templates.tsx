import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { Hammer } from 'lucide-react';
import { lazy, Suspense } from 'react';
import type { Template } from '../../../protocol/api/template.ts';
import { useRead } from '../../api/hooks.ts';
import { formatBytes, formatCount } from '../../format.ts';
import { Ago, Badge, Empty } from '../../parts/bits.tsx';
import { Code } from '../../code/code.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { buildTone } from './build-tone.ts';
import type { TemplatesSearch } from './templates-search.ts';
import { useForbidden } from '../../parts/role-button.tsx';

const DockerfileSheet = lazy(() =>
  import('./dockerfile-sheet.tsx').then(({ DockerfileSheet }) => ({ default: DockerfileSheet })),
);

const example = `import { Template } from 'e2b';

await Template.build(Template().fromImage('node:22').npmInstall('tsx'), 'my-template');`;

/** The templates that a team can make sandboxes from. */
export function Templates() {
  const templates = useRead<Template[]>('/templates');
  const { build, again }: TemplatesSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const forbidden = useForbidden('developer');
  return (
    <Page
      title="Templates"
      actions={
        <Link
          to="/templates"
          search={{ build: 'my-template' }}
          className="button primary"
          disabled={forbidden !== undefined}
          title={forbidden}
        >
          <Hammer size={15} /> Build from a Dockerfile
        </Link>
      }
    >
      <Loaded of={templates}>{rows => <TemplateTable rows={rows} />}</Loaded>
      {build !== undefined && forbidden === undefined && (
        <Suspense>
          <DockerfileSheet
            name={build}
            again={again}
            onClose={() => void navigate({ to: '/templates', replace: true })}
          />
        </Suspense>
      )}
    </Page>
  );
}

function TemplateTable({ rows }: { rows: Template[] }) {
  return (
    <Table
      label="Templates"
      file="templates"
      rows={rows}
      keyOf={({ templateID }) => templateID}
      empty={
        <Empty title="No templates yet">
          <p>Build one from a program; its builds and their logs show here.</p>
          <Code text={example} />
        </Empty>
      }
      columns={[
        {
          name: 'Name',
          text: ({ templateID, names }) => names[0] ?? templateID,
          of: ({ templateID, names }) => (
            <Link to="/templates/$templateId" params={{ templateId: templateID }}>
              {names[0] ?? <span className="mono">{templateID}</span>}
            </Link>
          ),
        },
        {
          name: 'Last build',
          text: ({ buildStatus }) => buildStatus,
          of: ({ buildStatus }) => <Badge tone={buildTone[buildStatus]}>{buildStatus}</Badge>,
        },
        {
          name: 'Size',
          text: ({ cpuCount, memoryMB }) => `${cpuCount} CPU, ${memoryMB} MiB`,
          of: ({ cpuCount, memoryMB }) => (
            <span className="num">
              {cpuCount} CPU, {formatBytes(memoryMB * 1024 ** 2)}
            </span>
          ),
        },
        {
          name: 'Builds',
          end: true,
          text: ({ buildCount }) => buildCount,
          of: ({ buildCount }) => formatCount(buildCount),
        },
        {
          name: 'Sandboxes made',
          end: true,
          text: ({ spawnCount }) => spawnCount,
          of: ({ spawnCount }) => formatCount(spawnCount),
        },
        {
          name: 'Last used',
          text: ({ lastSpawnedAt }) => lastSpawnedAt,
          of: ({ lastSpawnedAt }) => <Ago at={lastSpawnedAt} />,
        },
        { name: 'Seen by', of: ({ public: isPublic }) => (isPublic ? 'every team' : 'this team') },
      ]}
    />
  );
}
