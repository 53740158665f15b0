import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { Hammer, Play, Trash2 } from 'lucide-react';
import { useState } from 'react';
import type { TemplateBuild, TemplateWithBuilds } from '../../../protocol/api/template.ts';
import { useChange } from '../../api/hooks.ts';
import { rowsOfPages, useReadOn } from '../../api/pages.ts';
import { formatDuration } from '../../../base/duration.ts';
import { formatCount } from '../../format.ts';
import { Ago, Badge, Copy } from '../../parts/bits.tsx';
import { Confirm } from '../../parts/dialog.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { Card, Page } from '../../parts/page.tsx';
import { MoreOf } from '../../parts/rows/paged.tsx';
import { Table } from '../../parts/table.tsx';
import { buildTone } from './build-tone.ts';
import { useBuilds } from './builds.ts';
import { Content } from './content.tsx';
import { Tags } from './tags.tsx';
import { RoleButton, useForbidden } from '../../parts/role-button.tsx';

/** A template: what it is used for, its tags, its builds. */
export function TemplatePage() {
  const { templateId = '' } = useParams({ strict: false });
  const builds = useBuilds(templateId);
  const hasReady = rowsOfPages(builds).some(({ status }) => status === 'ready');
  useReadOn(builds, !hasReady);
  const template = builds.data?.pages[0]?.body;
  // The address may contain its name, but its builds are found only by its ID.
  const id = template?.templateID ?? templateId;
  return (
    <Page
      title={template?.names[0] ?? 'Template'}
      about={<Copy text={id} />}
      actions={template && <Actions of={template} />}
    >
      <Loaded of={builds}>
        {() => (
          <div className="columns">
            <Card title="Builds">
              <BuildTable templateId={id} rows={rowsOfPages(builds)} />
              <MoreOf of={builds} />
            </Card>
            <div className="stack">
              <Card title="Use">
                <dl className="facts body">
                  <dt>Sandboxes made</dt>
                  <dd className="num">{formatCount(template?.spawnCount ?? 0)}</dd>
                  <dt>Last one</dt>
                  <dd>
                    <Ago at={template?.lastSpawnedAt} />
                  </dd>
                  <dt>Names</dt>
                  <dd>{template?.names.join(', ') || '–'}</dd>
                </dl>
              </Card>
              {hasReady && <Content templateId={id} />}
              <Tags templateId={id} builds={rowsOfPages(builds)} />
            </div>
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function BuildTable({ templateId, rows }: { templateId: string; rows: TemplateBuild[] }) {
  return (
    <Table
      label="Builds"
      rows={rows}
      keyOf={({ buildID }) => buildID}
      empty="It was never built"
      columns={[
        { name: 'State', of: ({ status }) => <Badge tone={buildTone[status]}>{status}</Badge> },
        {
          name: 'Build',
          of: ({ buildID }) => (
            <Link
              to="/templates/$templateId/builds/$buildId"
              params={{ templateId, buildId: buildID }}
              className="mono"
            >
              {buildID.slice(0, 8)}
            </Link>
          ),
        },
        { name: 'Begun', of: ({ createdAt }) => <Ago at={createdAt} /> },
        {
          name: 'Took',
          end: true,
          of: ({ createdAt, finishedAt }) =>
            finishedAt ? formatDuration(Date.parse(finishedAt) - Date.parse(createdAt)) : '–',
        },
      ]}
    />
  );
}

function Actions({ of: template }: { of: TemplateWithBuilds }) {
  const navigate = useNavigate();
  const [asking, setAsking] = useState(false);
  const forbidden = useForbidden('developer');
  const path = `/templates/${template.templateID}`;
  const update = useChange('Changed', ['/templates']);
  const remove = useChange('Template deleted', ['/templates']);
  const [showing, setShowing] = useState(false);
  const show = (isPublic: boolean) =>
    update.mutate({ method: 'PATCH', path: `/v2${path}`, body: { public: isPublic } });
  return (
    <>
      <RoleButton least="developer" onClick={() => (template.public ? show(false) : setShowing(true))}>
        {template.public ? 'Keep to this team' : 'Show to every team'}
      </RoleButton>
      <Link
        to="/templates"
        search={{ build: template.aliases[0] ?? template.templateID, again: template.templateID }}
        className="button"
        disabled={forbidden !== undefined}
        title={forbidden}
      >
        <Hammer size={14} /> Build again
      </Link>
      <Link
        to="/sandboxes"
        search={{ create: template.names[0] ?? template.templateID }}
        className="button"
        disabled={forbidden !== undefined}
        title={forbidden}
      >
        <Play size={14} /> New sandbox
      </Link>
      <RoleButton least="developer" className="button danger" onClick={() => setAsking(true)}>
        <Trash2 size={14} /> Delete
      </RoleButton>
      {showing && (
        <Confirm
          title="Show this template to every team?"
          action="Show it"
          onClose={() => setShowing(false)}
          onConfirm={() => {
            setShowing(false);
            show(true);
          }}
        >
          <p className="muted">Other teams see its name, and begin sandboxes with all the files that are in it.</p>
        </Confirm>
      )}
      {asking && (
        <Confirm
          title="Delete this template?"
          action="Delete"
          busy={remove.isPending}
          onClose={() => setAsking(false)}
          onConfirm={() => remove.mutate({ method: 'DELETE', path, then: () => void navigate({ to: '/templates' }) })}
        >
          <p className="muted">
            No new sandboxes can be made from it. It can’t be deleted while one that was made from it runs or is paused.
          </p>
        </Confirm>
      )}
    </>
  );
}
