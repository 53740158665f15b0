import { Link } from '@tanstack/react-router';
import { History, Undo2 } from 'lucide-react';
import { useState } from 'react';
import type { TemplateBuild } from '../../../protocol/api/template.ts';
import type { TemplateTagAssignment, TemplateTagGroups } from '../../../protocol/api/template-tags.ts';
import { useChange } from '../../api/hooks.ts';
import { usePages } from '../../api/pages.ts';
import { useMay } from '../../api/session.tsx';
import { Ago, Badge } from '../../parts/bits.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Card } from '../../parts/page.tsx';
import { Paged } from '../../parts/rows/paged.tsx';
import { Table } from '../../parts/table.tsx';
import { ExactTime } from '../../parts/zone.tsx';

type Group = TemplateTagGroups['tags'][number];
type TagsProps = { templateId: string; builds: TemplateBuild[] };

/** Tags on a page, and builds of each: as many as the API gives at once. */
const [tagsMax, buildsMax] = [100, 20];

/** The tags of a template's builds, what each named before, and a way back. */
export function Tags({ templateId, builds }: TagsProps) {
  const path = `/templates/${encodeURIComponent(templateId)}/tags`;
  const groups = usePages<Group, TemplateTagGroups>(`${path}/groups`, {
    query: { tagsLimit: tagsMax, assignmentLimit: buildsMax, sort: 'name_asc' },
    rowsOf: ({ tags }) => tags,
    nextOf: ({ nextCursor }) => (nextCursor === null ? null : { tagsCursor: nextCursor }),
  });
  const change = useChange('Changed', ['/templates']);
  const mayChange = useMay('developer');
  const [shown, setShown] = useState<string | null>(null);
  const assign = (tag: string, build: string) =>
    change.mutate({ method: 'POST', path: '/templates/tags', body: { target: `${templateId}:${build}`, tags: [tag] } });
  const remove = (tag: string) =>
    change.mutate({ method: 'DELETE', path: '/templates/tags', body: { name: templateId, tags: [tag] } });
  const ready = builds.filter(({ status }) => status === 'ready');
  return (
    <Card title="Tags">
      <Paged of={groups}>
        {tags => {
          const history = tags.find(({ tag }) => tag === shown);
          return (
            <>
              <Table
                label="Tags"
                rows={tags}
                keyOf={({ tag }) => tag}
                empty="It has no tags"
                columns={[
                  { name: 'Tag', of: ({ tag }) => <span className="mono">{tag}</span> },
                  {
                    name: 'Build',
                    of: ({ assignments: [now] }) => now && <BuildLink of={now} template={templateId} />,
                  },
                  { name: 'Since', of: ({ assignments: [now] }) => <Ago at={now?.assignedAt} /> },
                  {
                    name: ' ',
                    end: true,
                    of: group => (
                      <TagActions
                        of={group}
                        disabled={!mayChange || change.isPending}
                        onHistory={() => setShown(group.tag)}
                        onAssign={assign}
                        onRemove={remove}
                      />
                    ),
                  },
                ]}
              />
              {ready.length > 0 && mayChange && (
                <AssignForm builds={ready} isBusy={change.isPending} onAssign={assign} />
              )}
              {history && (
                <TagHistory
                  of={history}
                  template={templateId}
                  disabled={!mayChange || change.isPending}
                  onAssign={build => assign(history.tag, build)}
                  onClose={() => setShown(null)}
                />
              )}
            </>
          );
        }}
      </Paged>
    </Card>
  );
}

function BuildLink({ of: { buildId }, template }: { of: TemplateTagAssignment; template: string }) {
  return (
    <Link to="/templates/$templateId/builds/$buildId" params={{ templateId: template, buildId }} className="mono">
      {buildId.slice(0, 8)}
    </Link>
  );
}

type TagActionsProps = {
  of: Group;
  disabled: boolean;
  onHistory: () => void;
  onAssign: (tag: string, build: string) => void;
  onRemove: (tag: string) => void;
};

function TagActions({ of: { tag, assignments }, disabled, onHistory, onAssign, onRemove }: TagActionsProps) {
  const [, before] = assignments;
  return (
    <span className="row" style={{ justifyContent: 'flex-end', flexWrap: 'nowrap', gap: 2 }}>
      {before && (
        <>
          <button
            type="button"
            className="button bare tiny"
            disabled={disabled}
            aria-label={`Roll back ${tag}`}
            title={`To build ${before.buildId.slice(0, 8)}, which it named before`}
            onClick={() => onAssign(tag, before.buildId)}
          >
            <Undo2 size={14} /> Roll back
          </button>
          <button
            type="button"
            className="button bare tiny"
            aria-label={`History of ${tag}`}
            title="History"
            onClick={onHistory}
          >
            <History size={14} />
          </button>
        </>
      )}
      {tag !== 'default' && (
        <button
          type="button"
          className="button bare tiny"
          aria-label={`Remove ${tag}`}
          disabled={disabled}
          onClick={() => onRemove(tag)}
        >
          Remove
        </button>
      )}
    </span>
  );
}

type TagHistoryProps = {
  of: Group;
  template: string;
  disabled: boolean;
  onAssign: (build: string) => void;
  onClose: () => void;
};

/** The builds that a tag has named, the latest first. */
function TagHistory({ of: { tag, assignments, hasMore }, template, disabled, onAssign, onClose }: TagHistoryProps) {
  return (
    <Dialog title={`What ${tag} has named`} onClose={onClose}>
      <Table
        label={`History of ${tag}`}
        rows={assignments}
        keyOf={({ assignmentId }) => assignmentId}
        empty="Nothing"
        columns={[
          { name: 'Build', of: one => <BuildLink of={one} template={template} /> },
          {
            name: 'Named from',
            of: ({ assignedAt }) => (
              <span className="num">
                <ExactTime at={assignedAt} />
              </span>
            ),
          },
          {
            name: ' ',
            end: true,
            of: one =>
              one === assignments[0] ? (
                <Badge tone="ok">now</Badge>
              ) : (
                <button
                  type="button"
                  className="button tiny"
                  disabled={disabled}
                  aria-label={`Point here: ${one.buildId.slice(0, 8)}`}
                  onClick={() => onAssign(one.buildId)}
                >
                  Point here
                </button>
              ),
          },
        ]}
      />
      {hasMore && <p className="small muted">Earlier ones are not shown.</p>}
      <footer>
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
      </footer>
    </Dialog>
  );
}

type AssignFormProps = { builds: TemplateBuild[]; isBusy: boolean; onAssign: (tag: string, build: string) => void };

function AssignForm({ builds, isBusy, onAssign }: AssignFormProps) {
  const [tag, setTag] = useState('');
  const [build, setBuild] = useState('');
  return (
    <form
      className="row"
      style={{ padding: 14 }}
      onSubmit={event => {
        event.preventDefault();
        onAssign(tag, build || (builds[0]?.buildID ?? ''));
        setTag('');
      }}
    >
      <input
        aria-label="Tag"
        placeholder="Tag"
        required
        maxLength={128}
        size={12}
        value={tag}
        onChange={event => setTag(event.target.value)}
      />
      <select aria-label="Build to name" value={build} onChange={event => setBuild(event.target.value)}>
        {builds.map(({ buildID, createdAt }) => (
          <option key={buildID} value={buildID}>
            {buildID.slice(0, 8)} of <ExactTime at={createdAt} />
          </option>
        ))}
      </select>
      <button className="button" disabled={isBusy}>
        Assign
      </button>
    </form>
  );
}
