import { useNavigate } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { useViewer } from '../api/session.tsx';
import { destinations } from './destinations.ts';
import type { Destination } from './destinations.ts';
import { isTyping } from './typing.ts';

type PaletteProps = { open: boolean; onOpen: () => void; onClose: () => void };
/** `of`: what the page belongs to. */
type Entry = { name: string; to: string; key?: string; of?: string };

const entriesOf = (of: string, pages: readonly Destination[]): Entry[] => pages.map(page => ({ ...page, of }));

/** The list may be longer than its space. */
const keepInSight = (element: HTMLElement | null) => element?.scrollIntoView({ block: 'nearest' });

/** Opens a page, or a sandbox by its ID, from the keyboard: Ctrl K, or `g` and the letter of a page. */
export function Palette({ open, onOpen, onClose }: PaletteProps) {
  const navigate = useNavigate();
  const { session, team } = useViewer();
  const pages = [
    ...(team ? entriesOf('Team', destinations.team) : []),
    ...entriesOf('You', destinations.account),
    ...(session.operator ? entriesOf('Operator', destinations.operator) : []),
  ];
  const pending = useRef(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key === 'k') {
        event.preventDefault();
        onOpen();
        return;
      }
      if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      const page = pending.current ? pages.find(({ key }) => key === event.key) : undefined;
      pending.current = event.key === 'g';
      if (page) void navigate({ to: page.to });
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  });
  return open ? <Finder pages={pages} onClose={onClose} /> : null;
}

function Finder({ pages, onClose }: { pages: Entry[]; onClose: () => void }) {
  const navigate = useNavigate();
  const element = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  useEffect(() => element.current?.showModal(), []);
  const wanted = text.trim().toLowerCase();
  const found = [
    ...pages.filter(({ name }) => name.toLowerCase().includes(wanted)),
    ...(/^[a-z0-9]{10,}$/.test(wanted) ? [{ name: `Sandbox ${wanted}`, to: `/sandboxes/${wanted}` }] : []),
  ];
  const go = (entry: Entry | undefined) => {
    onClose();
    if (entry) void navigate({ to: entry.to });
  };
  return (
    <dialog ref={element} className="palette" aria-label="Go to" onClose={onClose}>
      <div className="inside">
        <input
          role="combobox"
          aria-expanded
          aria-controls="palette-list"
          aria-label="Page, or ID of a sandbox"
          aria-activedescendant={found[at] ? `palette-${at}` : undefined}
          placeholder="Page, or ID of a sandbox"
          value={text}
          onChange={event => {
            setText(event.target.value);
            setAt(0);
          }}
          onKeyDown={event => {
            if (event.key === 'ArrowDown') setAt(Math.min(found.length - 1, at + 1));
            else if (event.key === 'ArrowUp') setAt(Math.max(0, at - 1));
            else if (event.key === 'Enter') go(found[at]);
            else return;
            event.preventDefault();
          }}
        />
        <ul role="listbox" id="palette-list" aria-label="Pages">
          {found.map((entry, index) => (
            <li
              key={entry.to}
              id={`palette-${index}`}
              ref={index === at ? keepInSight : undefined}
              role="option"
              aria-selected={index === at}
              onClick={() => go(entry)}
            >
              {entry.name} {entry.of !== undefined && <span className="muted small">{entry.of}</span>}
            </li>
          ))}
        </ul>
      </div>
    </dialog>
  );
}
