import { useInfiniteQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTeam } from '../../api/session.tsx';
import { Loading, Problem, useClockLead } from '../../parts/bits.tsx';
import { formatCount } from '../../format.ts';
import { More } from '../../parts/rows/more.tsx';
import { CsvButton } from '../../parts/table.tsx';
import { BulkBar } from './bulk-bar.tsx';
import { listingOf } from './listing-query.ts';
import { NoSandboxes } from './no-sandboxes.tsx';
import { SandboxTable } from './sandbox-table.tsx';
import { sandboxesCsv } from './sandboxes-csv.ts';
import { isFiltered } from './search.ts';
import type { SandboxesFilter, SandboxesSearch } from './search.ts';

type ListingProps = { search: SandboxesSearch; onFilter: (next: SandboxesFilter) => void };

/** The existing sandboxes, page by page as far as requested. */
export function Listing({ search, onFilter }: ListingProps) {
  const { teamID } = useTeam();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const pages = useInfiniteQuery({
    ...listingOf(teamID, search, Date.now() + useClockLead()),
    placeholderData: (previous, before) => (before?.queryKey[1] === teamID ? previous : undefined),
  });
  const { data, error, refetch, isPlaceholderData } = pages;
  if (!data) return error ? <Problem error={error} onRetry={() => void refetch()} /> : <Loading />;
  const rows = data.pages.flatMap(({ items }) => items);
  const running = data.pages[0]?.running;
  const selected = rows.filter(({ sandboxID }) => chosen.has(sandboxID));
  return (
    <>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {rows.length === 0 ? (
        <NoSandboxes filtered={search.show !== undefined || isFiltered(search)} />
      ) : (
        <SandboxTable
          rows={rows}
          areLeaving={isPlaceholderData}
          chosen={chosen}
          onChoose={setChosen}
          onFilter={onFilter}
        />
      )}
      <div className="row small muted">
        <span aria-live="polite">
          {formatCount(rows.length)} shown
          {running !== null && running !== undefined && `, ${formatCount(running)} running in all`}
        </span>
        {rows.length > 0 && <CsvButton name="sandboxes" of={() => sandboxesCsv(rows)} />}
        {pages.hasNextPage && (
          <More
            isComing={pages.isFetchingNextPage}
            isBusy={pages.isFetching}
            onMore={() => void pages.fetchNextPage({ cancelRefetch: false })}
          />
        )}
      </div>
      {selected.length > 0 && <BulkBar selected={selected} onDone={() => setChosen(new Set())} />}
    </>
  );
}
