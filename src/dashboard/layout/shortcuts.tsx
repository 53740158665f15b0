import { useNavigate, useParams } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { useCalls } from '../code/calls.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { destinations } from './destinations.ts';
import { isTyping } from './typing.ts';

/** What a key does outside of text fields, besides `g` and the letter of a page. */
const keys: [key: string, text: string][] = [
  ['Ctrl K', 'go to a page, or to a sandbox by its ID'],
  ['/', 'search in the page'],
  ['j  k', 'the next row, the one before'],
  ['Enter', 'open the row'],
  ['x', 'choose the row'],
  ['c', 'actions show their code, or are done again'],
  ['t  l', 'terminal, logs of the sandbox that is shown'],
  ['?', 'this list'],
];

/** The links that open the rows of the page's tables. */
const rowLinks = () => [...document.querySelectorAll<HTMLElement>('main tbody tr a[href]:first-of-type')];

/** Moves the focus to the next row or the one before. */
function moveRow(by: 1 | -1): void {
  const links = rowLinks();
  const row = document.activeElement?.closest('tbody tr');
  const at = row ? links.findIndex(link => row.contains(link)) : -1;
  links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + by))]?.focus();
}

/** The search field of the page. */
const searchField = () =>
  document.querySelector<HTMLElement>('main input[type=search], main form input:not([type=checkbox])');

/** Keys for rows, for searching and for a sandbox's pages; `?` lists all of them. */
export function Shortcuts() {
  const [isListed, setListed] = useState(false);
  const navigate = useNavigate();
  const { toggle } = useCalls();
  const { sandboxId } = useParams({ strict: false });
  useEffect(() => {
    // After `g`, a letter means a page.
    let isPage = false;
    const doThese: Record<string, () => void> = {
      '?': () => setListed(true),
      '/': () => searchField()?.focus(),
      j: () => moveRow(1),
      k: () => moveRow(-1),
      x: () => document.activeElement?.closest('tr')?.querySelector<HTMLElement>('input[type=checkbox]')?.click(),
      c: toggle,
      ...(sandboxId !== undefined && {
        t: () => void navigate({ to: '/sandboxes/$sandboxId/terminal', params: { sandboxId } }),
        l: () => void navigate({ to: '/sandboxes/$sandboxId/logs', params: { sandboxId } }),
      }),
    };
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      const what = isPage ? undefined : doThese[event.key];
      isPage = event.key === 'g';
      if (!what) return;
      event.preventDefault();
      what();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, [navigate, sandboxId, toggle]);
  return isListed ? <KeyList onClose={() => setListed(false)} /> : null;
}

function KeyList({ onClose }: { onClose: () => void }) {
  const pages = Object.values(destinations).flat();
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="facts">
        {keys.map(([key, text]) => (
          <Key key={key} name={key} text={text} />
        ))}
        {pages.map(({ key, name, to }) => key !== undefined && <Key key={to} name={`g  ${key}`} text={name} />)}
      </dl>
      <footer>
        <button type="button" className="button" onClick={onClose}>
          Close
        </button>
      </footer>
    </Dialog>
  );
}

function Key({ name, text }: { name: string; text: string }) {
  return (
    <>
      <dt>
        <kbd className="mono">{name}</kbd>
      </dt>
      <dd>{text}</dd>
    </>
  );
}
