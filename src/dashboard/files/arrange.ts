import type { FileOrder } from './search.ts';
import type { Entry } from './store.ts';

const comparisons: Record<FileOrder, (a: Entry, b: Entry) => number> = {
  name: () => 0,
  size: (a, b) => b.bytes - a.bytes,
  changed: (a, b) => Date.parse(b.changedAt ?? '') - Date.parse(a.changedAt ?? '') || 0,
};

/** The entries in display order: folders first, then the largest, the latest, or by name. */
export function arrange(entries: readonly Entry[], order: FileOrder, withHidden: boolean): Entry[] {
  return entries
    .filter(({ name }) => withHidden || !name.startsWith('.'))
    .toSorted(
      (a, b) =>
        Number(b.isFolder) - Number(a.isFolder) ||
        comparisons[order](a, b) ||
        (a.name < b.name ? -1 : Number(a.name > b.name)),
    );
}
