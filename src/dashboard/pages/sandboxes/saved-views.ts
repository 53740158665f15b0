import type { SandboxesSearch } from './search.ts';
import { readSandboxesSearch } from './search.ts';
import { parseJson } from '../../../base/json-text.ts';

/** A search with a name. */
export type SavedView = { name: string; search: SandboxesSearch };

/** Most views that a browser keeps per team. */
export const viewsMax = 20;
/** Characters of a view's name. */
const viewNameMax = 60;

const keyOf = (teamID: string) => `atoll.views.${teamID}`;

/** Reads the saved views, which anybody with access to the browser may have changed. */
export function readViews(text: string | null): SavedView[] {
  if (text === null) return [];
  const kept = parseJson(text);
  return (Array.isArray(kept) ? kept : []).slice(0, viewsMax).flatMap((one: { name?: unknown; search?: unknown }) => {
    const { name, search } = one ?? {};
    if (typeof name !== 'string' || name === '' || typeof search !== 'object' || search === null) return [];
    return [{ name: name.slice(0, viewNameMax), search: readSandboxesSearch(search as Record<string, unknown>) }];
  });
}

/** The saved views of a team in this browser. */
export const keptViews = (teamID: string): SavedView[] => readViews(localStorage.getItem(keyOf(teamID)));

/** Saves the views of a team. */
export const keepViews = (teamID: string, views: readonly SavedView[]): void =>
  localStorage.setItem(keyOf(teamID), JSON.stringify(views));

/** The views plus one more, which replaces one of the same name. */
export const withView = (views: readonly SavedView[], view: SavedView): SavedView[] => [
  ...views.filter(({ name }) => name !== view.name).slice(1 - viewsMax),
  view,
];
