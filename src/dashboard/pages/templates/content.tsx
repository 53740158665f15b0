import { Link } from '@tanstack/react-router';
import type { TemplateContent } from '../../../protocol/api/template.ts';
import { useRead } from '../../api/hooks.ts';
import { formatBytes } from '../../format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';

/** This many characters of a digest are enough to tell layers apart. */
const digestCharacters = 12;
/** Templates that a row names; beyond that, it says how many more. */
const sharersMax = 3;

type Layer = TemplateContent['layers'][number];

/** How sandboxes of a template start, and the layers of their files. */
export function Content({ templateId }: { templateId: string }) {
  const content = useRead<TemplateContent>(`/templates/${encodeURIComponent(templateId)}/content`);
  return (
    <Card title="What a sandbox begins with">
      <Loaded of={content}>
        {({ user, workdir, startCommand, readyCommand, layers }) => (
          <>
            <dl className="facts body">
              <dt>User</dt>
              <dd className="mono">{user}</dd>
              <dt>Directory</dt>
              <dd>{workdir ? <span className="mono">{workdir}</span> : 'the home of the user'}</dd>
              <dt>Start command</dt>
              <dd>{startCommand ? <span className="mono">{startCommand}</span> : '–'}</dd>
              <dt>Ready when</dt>
              <dd>{readyCommand ? <span className="mono">{readyCommand}</span> : '–'}</dd>
            </dl>
            <Table
              label="Layers"
              rows={layers}
              keyOf={({ digest }) => digest}
              empty="It has no files of its own"
              columns={[
                { name: 'Layer', of: ({ digest }) => <Digest of={digest} /> },
                {
                  name: 'Size',
                  end: true,
                  of: ({ sizeBytes }) => (sizeBytes === undefined ? '–' : formatBytes(sizeBytes)),
                },
                { name: 'Shared with', of: ({ sharedBy }) => <Sharers of={sharedBy} /> },
              ]}
            />
          </>
        )}
      </Loaded>
    </Card>
  );
}

function Digest({ of: digest }: { of: string }) {
  const [, hex = digest] = digest.split(':');
  return (
    <span className="mono" title={digest}>
      {hex.slice(0, digestCharacters)}
    </span>
  );
}

function Sharers({ of: templates }: { of: Layer['sharedBy'] }) {
  if (templates.length === 0) return <span className="muted">nobody</span>;
  const more = templates.length - sharersMax;
  return (
    <span className="row chips">
      {templates.slice(0, sharersMax).map(({ templateID, names }) => (
        <Link key={templateID} to="/templates/$templateId" params={{ templateId: templateID }} className="cut">
          {names[0] ?? templateID}
        </Link>
      ))}
      {more > 0 && <span className="muted">and {more} more</span>}
    </span>
  );
}
