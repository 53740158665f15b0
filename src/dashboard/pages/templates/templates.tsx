import { Link } from '@tanstack/react-router';
import type { Template } from '../../../protocol/api/template.ts';
import { useRead } from '../../api/hooks.ts';
import { formatBytes, formatCount } from '../../format.ts';
import { Ago, Badge, Empty } from '../../parts/bits.tsx';
import { Code } from '../../parts/code.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Page } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';
import { buildTone } from './build-tone.ts';

const example = `import { Template } from 'e2b';

await Template.build(Template().fromImage('node:22').npmInstall('tsx'), 'my-template');`;

/** The templates that a team can make sandboxes from. */
export function Templates() {
  const templates = useRead<Template[]>('/templates');
  return (
    <Page title="Templates">
      <Loaded of={templates}>
        {rows => (
          <Table
            label="Templates"
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
                of: ({ templateID, names }) => (
                  <Link to="/templates/$templateId" params={{ templateId: templateID }}>
                    {names[0] ?? <span className="mono">{templateID}</span>}
                  </Link>
                ),
              },
              {
                name: 'Last build',
                of: ({ buildStatus }) => <Badge tone={buildTone[buildStatus]}>{buildStatus}</Badge>,
              },
              {
                name: 'Size',
                of: ({ cpuCount, memoryMB }) => (
                  <span className="num">
                    {cpuCount} CPU, {formatBytes(memoryMB * 1024 ** 2)}
                  </span>
                ),
              },
              { name: 'Builds', end: true, of: ({ buildCount }) => formatCount(buildCount) },
              { name: 'Sandboxes made', end: true, of: ({ spawnCount }) => formatCount(spawnCount) },
              { name: 'Last used', of: ({ lastSpawnedAt }) => <Ago at={lastSpawnedAt} /> },
              { name: 'Seen by', of: ({ public: isPublic }) => (isPublic ? 'every team' : 'this team') },
            ]}
          />
        )}
      </Loaded>
    </Page>
  );
}
