import { useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import { ArrowDownUp, Plus, X } from 'lucide-react';
import { lazy, Suspense, useCallback } from 'react';
import { useTeam } from '../../api/session.tsx';
import { formText, useFormOf } from '../../parts/form-text.ts';
import { useClockLead } from '../../parts/bits.tsx';
import { Page } from '../../parts/page.tsx';
import { EndedTable } from './ended.tsx';
import { Listing } from './listing.tsx';
import { listingOf } from './listing-query.ts';
import { isFiltered, sinceMs } from './search.ts';
import type { SandboxesSearch } from './search.ts';
import { TeamStrip } from './team-strip.tsx';
import { ViewMenu } from './view-menu.tsx';
import { RoleButton, useForbidden } from '../../parts/role-button.tsx';

const CreateSheet = lazy(() =>
  import('./create/create-sheet.tsx').then(({ CreateSheet }) => ({ default: CreateSheet })),
);

const views = [
  { show: undefined, name: 'All' },
  { show: 'running', name: 'Running' },
  { show: 'paused', name: 'Paused' },
  { show: 'ended', name: 'Ended' },
] as const;

/** What changes in the URL; undefined members are removed from it. */
type SearchChange = Partial<Record<keyof SandboxesSearch, string | undefined>>;

/** Everything that runs, is paused, or has ended in the last days. */
export function Sandboxes() {
  const { teamID } = useTeam();
  const search: SandboxesSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const change = useCallback(
    (next: SearchChange) =>
      void navigate({
        to: '/sandboxes',
        search: (before: SandboxesSearch) => ({ ...before, ...next }) as SandboxesSearch,
        replace: true,
      }),
    [navigate],
  );
  const forbidden = useForbidden('developer');
  const client = useQueryClient();
  const lead = useClockLead();
  const router = useRouter();
  const filter = useCallback(
    (next: SearchChange) => {
      // Asked for at once: the answer arrives while the page is drawn.
      const search = { ...router.latestLocation.search, ...next } as SandboxesSearch;
      void client.prefetchInfiniteQuery(listingOf(teamID, search, Date.now() + lead));
      change(next);
    },
    [client, router, change, teamID, lead],
  );
  return (
    <Page
      title="Sandboxes"
      actions={
        <RoleButton least="developer" className="button primary" onClick={() => change({ create: 'base' })}>
          <Plus size={15} /> New sandbox
        </RoleButton>
      }
    >
      <TeamStrip />
      <div className="row filters">
        <div className="segments" role="group" aria-label="State">
          {views.map(({ show, name }) => (
            <Link
              key={name}
              to="/sandboxes"
              search={{ ...search, show }}
              aria-current={search.show === show ? 'page' : undefined}
              activeOptions={{ exact: true }}
            >
              {name}
            </Link>
          ))}
        </div>
        {search.show !== 'ended' && <Filters search={search} onChange={filter} />}
        <ViewMenu
          key={teamID}
          search={search}
          onShow={kept =>
            void navigate({ to: '/sandboxes', search: { ...kept, ...(search.team && { team: search.team }) } })
          }
        />
      </div>
      {search.show === 'ended' ? <EndedTable /> : <Listing search={search} onFilter={filter} />}
      {search.create !== undefined && forbidden === undefined && (
        <Suspense>
          <CreateSheet template={search.create} onClose={() => change({ create: undefined })} />
        </Suspense>
      )}
    </Page>
  );
}

type FiltersProps = { search: SandboxesSearch; onChange: (next: SearchChange) => void };

function Filters({ search, onChange }: FiltersProps) {
  const { text, template, metadata } = search;
  const form = useFormOf([text, template, metadata]);
  return (
    <>
      <form
        className="row"
        ref={form}
        onSubmit={event => {
          event.preventDefault();
          onChange({
            text: formText(event.currentTarget, 'text'),
            template: formText(event.currentTarget, 'template'),
            metadata: formText(event.currentTarget, 'metadata'),
          });
        }}
      >
        <input
          name="text"
          type="search"
          aria-label="ID or text in the metadata"
          placeholder="ID or text"
          defaultValue={text}
          maxLength={100}
          size={14}
        />
        <input name="template" aria-label="Template" placeholder="Template" defaultValue={template} size={14} />
        <input
          name="metadata"
          aria-label="Metadata, as key=value"
          placeholder="key=value"
          defaultValue={metadata}
          size={16}
        />
        <button className="button">Filter</button>
      </form>
      <Since value={search.since} onChange={since => onChange({ since })} />
      {search.node !== undefined && (
        <button type="button" className="chip" title="Of all nodes" onClick={() => onChange({ node: undefined })}>
          node={search.node} <X size={12} aria-hidden />
        </button>
      )}
      {isFiltered(search) && (
        <button
          type="button"
          className="button bare"
          onClick={() =>
            onChange({ text: undefined, template: undefined, metadata: undefined, node: undefined, since: undefined })
          }
        >
          <X size={14} /> Clear
        </button>
      )}
      <button
        type="button"
        className="button bare"
        onClick={() => onChange({ order: search.order === 'asc' ? undefined : 'asc' })}
      >
        <ArrowDownUp size={14} /> {search.order === 'asc' ? 'Oldest first' : 'Newest first'}
      </button>
    </>
  );
}

function Since({ value, onChange }: { value: string | undefined; onChange: (value: string | undefined) => void }) {
  return (
    <select aria-label="Started" value={value ?? ''} onChange={event => onChange(event.target.value || undefined)}>
      <option value="">Started at any time</option>
      {Object.keys(sinceMs).map(name => (
        <option key={name} value={name}>
          In the last {name}
        </option>
      ))}
    </select>
  );
}
