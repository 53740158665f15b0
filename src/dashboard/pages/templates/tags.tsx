import { useState } from 'react';
import type { TemplateBuild } from '../../../protocol/api/template.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { Ago } from '../../parts/bits.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card } from '../../parts/page.tsx';
import { Table } from '../../parts/table.tsx';

type Tag = { tag: string; buildID: string; createdAt: string };
type TagsProps = { templateId: string; name: string | undefined; builds: TemplateBuild[] };

/** The names of a template's builds. To give one to what another one names takes it over, or back. */
export function Tags({ templateId, name, builds }: TagsProps) {
  const tags = useRead<Tag[]>(`/templates/${encodeURIComponent(templateId)}/tags`);
  const change = useChange('Changed', ['/templates']);
  return (
    <Card title="Tags">
      <Loaded of={tags}>
        {rows => (
          <>
            <Table
              label="Tags"
              rows={rows}
              keyOf={({ tag }) => tag}
              empty="It has no tags"
              columns={[
                { name: 'Tag', of: ({ tag }) => <span className="mono">{tag}</span> },
                { name: 'Build', of: ({ buildID }) => <span className="mono muted">{buildID.slice(0, 8)}</span> },
                { name: 'Since', of: ({ createdAt }) => <Ago at={createdAt} /> },
                {
                  name: ' ',
                  end: true,
                  of: ({ tag }) =>
                    tag === 'default' ? null : (
                      <button
                        type="button"
                        className="button bare tiny"
                        onClick={() =>
                          change.mutate({ method: 'DELETE', path: '/templates/tags', body: { name, tags: [tag] } })
                        }
                      >
                        Remove
                      </button>
                    ),
                },
              ]}
            />
            {name !== undefined && rows.length > 0 && builds.length > 0 && (
              <Assign
                rows={rows}
                isBusy={change.isPending}
                onAssign={(tag, from) => {
                  const target = `${name}:${from}`;
                  change.mutate({ method: 'POST', path: '/templates/tags', body: { target, tags: [tag] } });
                }}
              />
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}

type AssignProps = { rows: Tag[]; isBusy: boolean; onAssign: (tag: string, from: string | undefined) => void };

function Assign({ rows, isBusy, onAssign }: AssignProps) {
  const [tag, setTag] = useState('');
  const [from, setFrom] = useState('');
  return (
    <form
      className="row"
      style={{ padding: 14 }}
      onSubmit={event => {
        event.preventDefault();
        onAssign(tag, from || rows[0]?.tag);
        setTag('');
      }}
    >
      <input
        aria-label="Tag"
        placeholder="Tag"
        required
        size={12}
        value={tag}
        onChange={event => setTag(event.target.value)}
      />
      <select aria-label="For the build of" value={from} onChange={event => setFrom(event.target.value)}>
        {rows.map(({ tag }) => (
          <option key={tag} value={tag}>
            for what {tag} names
          </option>
        ))}
      </select>
      <button className="button" disabled={isBusy}>
        Assign
      </button>
    </form>
  );
}
