import { Link } from '@tanstack/react-router';
import type { LifecycleEvent } from '../../../protocol/api/event.ts';
import type { Template } from '../../../protocol/api/template.ts';
import { useRead } from '../../api/hooks.ts';
import { usePages } from '../../api/pages.ts';
import { formatDuration } from '../../../base/duration.ts';
import { Ago, Badge } from '../../parts/bits.tsx';
import type { Tone } from '../../parts/bits.tsx';
import { Paged } from '../../parts/rows/paged.tsx';
import { Table } from '../../parts/table.tsx';

/** Why a sandbox ended, in words. */
export const reasons: Record<string, { text: string; tone: Tone }> = {
  request: { text: 'killed on request', tone: 'idle' },
  timeout: { text: 'its time was over', tone: 'idle' },
  exited: { text: 'its first process exited', tone: 'warn' },
  out_of_memory: { text: 'out of memory', tone: 'danger' },
  lost: { text: 'lost with its node', tone: 'danger' },
  failed: { text: 'did not start', tone: 'danger' },
};

type KillData = {
  kill_reason?: string;
  execution?: { execution_time?: number; vcpu_count?: number; memory_mb?: number };
};

/** The facts in a kill event. */
export const killOf = (event: LifecycleEvent): KillData => (event.event_data ?? {}) as KillData;

/** The sandboxes that ended in the last week, and why. */
export function EndedTable() {
  const ended = usePages<LifecycleEvent>('/events/sandboxes', {
    query: { types: 'sandbox.lifecycle.killed' },
    byOffset: true,
  });
  return (
    <Paged of={ended}>
      {events => (
        <>
          <Table
            label="Ended sandboxes"
            file="ended-sandboxes"
            rows={events}
            keyOf={({ id }) => id}
            empty="Nothing has ended in the last seven days"
            columns={[
              {
                name: 'Why',
                text: event => killOf(event).kill_reason,
                of: event => {
                  const { text, tone } = reasons[killOf(event).kill_reason ?? ''] ?? { text: 'ended', tone: 'idle' };
                  return <Badge tone={tone}>{text}</Badge>;
                },
              },
              {
                name: 'Sandbox',
                text: ({ subject }) => subject.id,
                of: ({ subject }) => (
                  <Link to="/sandboxes/$sandboxId" params={{ sandboxId: subject.id }} className="mono">
                    {subject.id}
                  </Link>
                ),
              },
              {
                name: 'Template',
                text: ({ sandboxTemplateId }) => sandboxTemplateId,
                of: ({ sandboxTemplateId }) => <TemplateName id={sandboxTemplateId} />,
              },
              { name: 'Ended', text: ({ timestamp }) => timestamp, of: ({ timestamp }) => <Ago at={timestamp} /> },
              {
                name: 'Last run took',
                end: true,
                text: event => killOf(event).execution?.execution_time,
                of: event => {
                  const took = killOf(event).execution?.execution_time;
                  return took === undefined ? '–' : formatDuration(took);
                },
              },
            ]}
          />
          <p className="small muted">Kept for seven days.</p>
        </>
      )}
    </Paged>
  );
}

/** The name of a template, as a link to it; its ID if it has no name or is gone. */
function TemplateName({ id }: { id: string | undefined }) {
  const { data: templates } = useRead<Template[]>('/templates');
  if (!id) return null;
  const name = templates?.find(({ templateID }) => templateID === id)?.names[0];
  if (name === undefined) return <span className="mono">{id}</span>;
  return (
    <Link to="/templates/$templateId" params={{ templateId: id }}>
      {name}
    </Link>
  );
}
