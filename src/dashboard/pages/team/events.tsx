import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import type { LifecycleEvent } from '../../../protocol/api/event.ts';
import { usePages } from '../../api/pages.ts';
import { Ago } from '../../parts/bits.tsx';
import { Page } from '../../parts/page.tsx';
import { Paged } from '../../parts/rows/paged.tsx';
import { Table } from '../../parts/table.tsx';

const kinds = ['sandbox', 'build', 'volume'] as const;
const plurals = { sandbox: 'Sandboxes', build: 'Builds', volume: 'Volumes' };
/** The events page's state in the URL. */
export type EventsSearch = { kind?: (typeof kinds)[number] };

/** Reads the search part of a URL, which anybody may have written. */
export function readEventsSearch(raw: Record<string, unknown>): EventsSearch {
  const kind = kinds.find(one => one === raw['kind']);
  return kind ? { kind } : {};
}

/** What happens in a team, live. */
export function Events() {
  const { kind }: EventsSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const events = usePages<LifecycleEvent>('/events', { query: { kind }, byOffset: true });
  return (
    <Page title="Events" about="What happened in the last seven days">
      <div className="segments" role="group" aria-label="About" style={{ justifySelf: 'start' }}>
        {[undefined, ...kinds].map(name => (
          <button
            key={name ?? 'all'}
            type="button"
            aria-pressed={name === kind}
            onClick={() => void navigate({ to: '/events', search: name ? { kind: name } : {}, replace: true })}
          >
            {name ? plurals[name] : 'All'}
          </button>
        ))}
      </div>
      <Paged of={events}>
        {rows => (
          <Table
            label="Events"
            file="events"
            rows={rows}
            keyOf={({ id }) => id}
            empty="Nothing has happened yet"
            columns={[
              { name: 'When', text: ({ timestamp }) => timestamp, of: ({ timestamp }) => <Ago at={timestamp} /> },
              { name: 'What', text: ({ type }) => type, of: ({ type }) => type.replace('.lifecycle.', ' ') },
              {
                name: 'Which',
                text: ({ subject }) => subject.id,
                of: ({ subject }) =>
                  subject.kind === 'sandbox' ? (
                    <Link to="/sandboxes/$sandboxId" params={{ sandboxId: subject.id }} className="mono">
                      {subject.id}
                    </Link>
                  ) : (
                    <span className="mono">{subject.id}</span>
                  ),
              },
              {
                name: 'More',
                text: ({ event_data: data }) => data && JSON.stringify(data),
                of: ({ event_data: data }) => (
                  <span
                    className="mono muted cut"
                    style={{ display: 'block', maxWidth: 420 }}
                    title={JSON.stringify(data)}
                  >
                    {data ? JSON.stringify(data) : ''}
                  </span>
                ),
              },
            ]}
          />
        )}
      </Paged>
    </Page>
  );
}
