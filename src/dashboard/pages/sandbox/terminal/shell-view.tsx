import { Minus, Plus, Search, Share2, X } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import type { Target } from '../../../api/agent.ts';
import { Badge } from '../../../parts/bits.tsx';
import type { Tone } from '../../../parts/bits.tsx';
import { useConnections } from '../../../api/connections.ts';
import { useToast } from '../../../parts/toasts.tsx';
import { showShell } from './screen.ts';
import type { ShellScreen } from './screen.ts';
import { SearchBar } from './search-bar.tsx';
import type { ShellState } from './shell-session.ts';
import type { ShellSize } from './terminal-search.ts';

const states: Record<ShellState, { text: string; tone: Tone }> = {
  connecting: { text: 'connecting', tone: 'warn' },
  waiting: { text: 'waiting', tone: 'warn' },
  open: { text: 'connected', tone: 'ok' },
  ended: { text: 'the shell has ended', tone: 'idle' },
  lost: { text: 'connecting again', tone: 'warn' },
  refused: { text: 'it can’t begin', tone: 'danger' },
};

/** The address at which others can watch a shell. */
const linkTo = (sandboxId: string, { watch, cols, rows }: { watch: number } & ShellSize) =>
  `${location.origin}/dashboard/sandboxes/${sandboxId}/terminal?watch=${watch}&cols=${cols}&rows=${rows}`;

type ShellViewProps = {
  target: Target;
  /** Its number among this window's own. */
  number?: number;
  /** The watched process of somebody else, and the size of its terminal. */
  watched?: number;
  size?: ShellSize | null;
  isShown: boolean;
  /** It gets the keys when it is shown. */
  isFirst: boolean;
  font: number;
  onFont: (by: 1 | -1) => void;
  onClose?: () => void;
};

/** Shows a shell in an element as long as its tab exists. */
function useScreen(props: ShellViewProps) {
  const { target, number, watched, size = null, isShown, isFirst, font } = props;
  const place = useRef<HTMLDivElement>(null);
  const screen = useRef<ShellScreen>(null);
  const [state, setState] = useState<ShellState>('connecting');
  const [message, setMessage] = useState('');
  const connections = useConnections();
  const isShownNow = useRef(isShown);
  const { sandboxId, token } = target;
  const [cols, rows] = [size?.cols, size?.rows];
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const shown = showShell(element, {
      target: { sandboxId, token },
      shell: watched === undefined ? { number: number ?? 1 } : { watched },
      size: cols !== undefined && rows !== undefined ? { cols, rows } : null,
      isShown: () => isShownNow.current,
      connections,
      onState(next, why) {
        setState(next);
        setMessage(why);
      },
    });
    screen.current = shown;
    return () => shown.close();
  }, [sandboxId, token, number, watched, cols, rows, connections]);
  useEffect(() => {
    isShownNow.current = isShown;
    connections.look();
  }, [isShown, connections]);
  useEffect(() => {
    if (isShown && isFirst) screen.current?.focus();
  }, [isShown, isFirst]);
  useEffect(() => screen.current?.setFont(font), [font]);
  return { place, screen, state, message };
}

/** A shell and its controls. It lives as long as its tab. */
export function ShellView(props: ShellViewProps) {
  const { target, watched, size = null, isShown, onFont, onClose } = props;
  const { place, screen, state, message } = useScreen(props);
  const [isSeeking, setSeeking] = useState(false);
  const toast = useToast();
  const { sandboxId } = target;
  const share = async () => {
    const shared = screen.current?.shared();
    if (!shared) return;
    await navigator.clipboard.writeText(linkTo(sandboxId, shared));
    toast({ kind: 'ok', text: 'A link is copied by which developers of the team watch this shell' });
  };
  const button = (label: string, icon: React.ReactNode, onClick: () => void) => (
    <button type="button" className="button bare" aria-label={label} title={label} onClick={onClick}>
      {icon}
    </button>
  );
  return (
    <div className="stack" style={{ gap: 8 }} hidden={!isShown}>
      <div className="row">
        <Badge tone={states[state].tone}>{states[state].text}</Badge>
        <span className="muted small grow">{message}</span>
        {button('Search in the terminal', <Search size={14} />, () => setSeeking(true))}
        {button('Smaller', <Minus size={14} />, () => onFont(-1))}
        {button('Larger', <Plus size={14} />, () => onFont(1))}
        {watched === undefined && button('Share this shell', <Share2 size={14} />, () => void share())}
        {onClose && (
          <button type="button" className="button" onClick={() => void screen.current?.end().then(onClose)}>
            <X size={14} /> End this shell
          </button>
        )}
      </div>
      {isSeeking && (
        <SearchBar
          onFind={(text, backwards) => screen.current?.find(text, backwards) ?? false}
          onClose={() => {
            setSeeking(false);
            screen.current?.endSearch();
            screen.current?.focus();
          }}
        />
      )}
      <div className={`terminal-box ${size ? 'watched' : ''}`} ref={place} />
    </div>
  );
}
