import type { SandboxesSearch } from './search.ts';
import { readSandboxesSearch } from './search.ts';
import { parseJson } from '../../../base/json-text.ts';

/** A search with a name. */
export type SavedView = { name: string; search: SandboxesSearch };

/** Views that a browser keeps for a team. */
export const viewsMax = 20;
/** Characters of a view's name. */
const viewNameMax = 60;

const keyOf = (teamID: string) => `atoll.views.${teamID}`;

/** Reads what was kept, which anybody with the browser may have changed. */
export function readViews(text: string | null): SavedView[] {
  if (text === null) return [];
  const kept = parseJson(text);
  return (Array.isArray(kept) ? kept : []).slice(0, viewsMax).flatMap((one: { name?: unknown; search?: unknown }) => {
    const { name, search } = one ?? {};
    if (typeof name !== 'string' || name === '' || typeof search !== 'object' || search === null) return [];
    return [{ name: name.slice(0, viewNameMax), search: readSandboxesSearch(search as Record<string, unknown>) }];
  });
}

/** The views that this browser keeps for a team. */
export const keptViews = (teamID: string): SavedView[] => readViews(localStorage.getItem(keyOf(teamID)));

/** Keeps the views of a team. */
export const keepViews = (teamID: string, views: readonly SavedView[]): void =>
  localStorage.setItem(keyOf(teamID), JSON.stringify(views));

/** The views with one more; one of the same name goes. */
export const withView = (views: readonly SavedView[], view: SavedView): SavedView[] => [
  ...views.filter(({ name }) => name !== view.name).slice(1 - viewsMax),
  view,
];
