import { Bookmark, X } from 'lucide-react';
import { useState } from 'react';
import { useTeam } from '../../api/session.tsx';
import { Asked } from '../../parts/asked.tsx';
import { keepViews, keptViews, withView } from './saved-views.ts';
import type { SavedView } from './saved-views.ts';
import type { SandboxesSearch } from './search.ts';

const keyOf = ({ team: _, create: __, ...search }: SandboxesSearch) =>
  JSON.stringify(Object.entries(search).toSorted(([a], [b]) => (a < b ? -1 : 1)));

type ViewMenuProps = { search: SandboxesSearch; onShow: (search: SandboxesSearch) => void };

/** The searches that this browser keeps under names; each is also an address. */
export function ViewMenu({ search, onShow }: ViewMenuProps) {
  const { teamID } = useTeam();
  const [views, setViews] = useState(() => keptViews(teamID));
  const [asking, setAsking] = useState(false);
  const change = (next: SavedView[]) => {
    keepViews(teamID, next);
    setViews(next);
  };
  const { team: _, create: __, ...kept } = search;
  const shown = views.find(view => keyOf(view.search) === keyOf(search));
  return (
    <>
      {views.length > 0 && (
        <select
          aria-label="Saved views"
          value={shown?.name ?? ''}
          onChange={event => {
            const chosen = views.find(({ name }) => name === event.target.value);
            if (chosen) onShow(chosen.search);
          }}
        >
          <option value="" disabled>
            Saved views
          </option>
          {views.map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      )}
      {shown ? (
        <button type="button" className="button bare" onClick={() => change(views.filter(view => view !== shown))}>
          <X size={14} /> Forget this view
        </button>
      ) : (
        Object.keys(kept).length > 0 && (
          <button type="button" className="button bare" onClick={() => setAsking(true)}>
            <Bookmark size={14} /> Save this view
          </button>
        )
      )}
      {asking && (
        <Asked
          title="Save this view"
          label="Name"
          type="text"
          required
          action="Save"
          onClose={() => setAsking(false)}
          onDone={name => change(withView(views, { name, search: kept }))}
        />
      )}
    </>
  );
}
