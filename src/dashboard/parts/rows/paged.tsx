import type { ReactNode } from 'react';
import { rowsOfPages } from '../../api/pages.ts';
import type { Pages } from '../../api/pages.ts';
import { Loaded } from '../loaded.tsx';
import { More } from './more.tsx';

type PagedProps<T> = { of: Pages<T>; children: (rows: T[]) => ReactNode };

/** The rows of a list read so far, and the next ones once the user scrolls there. */
export function Paged<T>({ of: pages, children }: PagedProps<T>) {
  return (
    <Loaded of={pages}>
      {() => (
        <>
          {children(rowsOfPages(pages))}
          <MoreOf of={pages} />
        </>
      )}
    </Loaded>
  );
}

/** A way to the next rows; nothing if these are all. */
export function MoreOf<T>({ of: pages }: { of: Pages<T> }) {
  if (!pages.hasNextPage) return null;
  return (
    <div className="row">
      <More
        isComing={pages.isFetchingNextPage}
        isBusy={pages.isFetching}
        onMore={() => void pages.fetchNextPage({ cancelRefetch: false })}
      />
    </div>
  );
}
