import { ArrowDown, ArrowUp, X } from 'lucide-react';
import { useState } from 'react';

type SearchBarProps = { onFind: (text: string, backwards: boolean) => boolean; onClose: () => void };

/** Searches what a terminal shows: Enter goes up to the previous match, Shift and Enter down; Escape ends it. */
export function SearchBar({ onFind, onClose }: SearchBarProps) {
  const [text, setText] = useState('');
  const [isNowhere, setNowhere] = useState(false);
  const find = (backwards: boolean) => setNowhere(text !== '' && !onFind(text, backwards));
  return (
    <form
      className="row"
      role="search"
      onSubmit={event => {
        event.preventDefault();
        find(true);
      }}
      onKeyDown={event => {
        if (event.key === 'Escape') onClose();
        if (event.key === 'Enter' && event.shiftKey) {
          event.preventDefault();
          find(false);
        }
      }}
    >
      <input
        type="search"
        aria-label="Text in the terminal"
        placeholder="Text in the terminal"
        autoFocus
        value={text}
        onChange={event => setText(event.target.value)}
      />
      <button className="button bare" aria-label="The one before" title="The one before (Enter)">
        <ArrowUp size={14} />
      </button>
      <button
        type="button"
        className="button bare"
        aria-label="The next one"
        title="The next one (Shift Enter)"
        onClick={() => find(false)}
      >
        <ArrowDown size={14} />
      </button>
      <button type="button" className="button bare" aria-label="End the search" onClick={onClose}>
        <X size={14} />
      </button>
      <span className="muted small" role="status">
        {isNowhere && 'It is not there'}
      </span>
    </form>
  );
}
