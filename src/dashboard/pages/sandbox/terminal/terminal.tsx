import '@xterm/xterm/css/xterm.css';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal as Screen } from '@xterm/xterm';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { Plus, X } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import type { Target } from '../../../api/agent.ts';
import { Badge } from '../../../parts/bits.tsx';
import { stampStyles } from '../../../parts/style-nonce.ts';
import { NeedsRunning } from '../needs-running.tsx';
import { keepShellNumbers, shellNumbers } from './shell-memory.ts';
import { openShell } from './shell-session.ts';
import type { ShellState } from './shell-session.ts';
import type { TerminalSearch } from './terminal-search.ts';
import { useTarget } from '../target.ts';

const fontPixels = 13;
const scrollbackLines = 5_000;
/** Shells of one window in one sandbox. */
const shellsMax = 12;

/** Shells in the sandbox, a tab each. They go on when one leaves, and are there again after a reload. */
export function Terminal() {
  const target = useTarget();
  if (!target) return <NeedsRunning what="A terminal" />;
  return <Shells key={target.sandboxId} target={target} />;
}

function Shells({ target }: { target: Target }) {
  const { shell }: TerminalSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const [numbers, setNumbers] = useState(() => shellNumbers(target.sandboxId));
  const shown = numbers.find(number => number === shell) ?? numbers[0];
  const change = (next: number[], show: number | undefined) => {
    keepShellNumbers(target.sandboxId, next);
    setNumbers(next);
    void navigate({ to: '.', search: show === undefined ? {} : { shell: show }, replace: true });
  };
  const open = () => {
    const next = Math.max(...numbers) + 1;
    change([...numbers, next], next);
  };
  const close = (closed: number) => {
    const left = numbers.filter(number => number !== closed);
    const next = left.length > 0 ? left : [closed + 1];
    change(next, next.at(-1));
  };
  return (
    <div className="stack" style={{ gap: 10 }}>
      <div className="row">
        <div className="segments" role="group" aria-label="Shells">
          {numbers.map(number => (
            <button key={number} type="button" aria-pressed={number === shown} onClick={() => change(numbers, number)}>
              Shell {number}
            </button>
          ))}
        </div>
        <button type="button" className="button" disabled={numbers.length >= shellsMax} onClick={open}>
          <Plus size={14} /> New shell
        </button>
      </div>
      {numbers.map(number => (
        <ShellView
          key={number}
          target={target}
          number={number}
          isShown={number === shown}
          onClose={() => close(number)}
        />
      ))}
    </div>
  );
}

function newScreen(): Screen {
  const screen = new Screen({
    fontFamily: "'JetBrains Mono Variable', monospace",
    fontSize: fontPixels,
    scrollback: scrollbackLines,
    screenReaderMode: true,
    // What runs inside may not touch the window or its title.
    windowOptions: {},
    theme: { background: '#0d1412', foreground: '#dbe6e1', cursor: '#5fcdb8', selectionBackground: '#2c5249' },
  });
  // OSC 52 writes the clipboard: not for what runs in a sandbox.
  screen.parser.registerOscHandler(52, () => true);
  return screen;
}

type ShellViewProps = { target: Target; number: number; isShown: boolean; onClose: () => void };

function ShellView({ target, number, isShown, onClose }: ShellViewProps) {
  const place = useRef<HTMLDivElement>(null);
  const session = useRef<ReturnType<typeof openShell>>(null);
  const view = useRef<Screen>(null);
  const [state, setState] = useState<ShellState>('connecting');
  const [message, setMessage] = useState('');
  const { sandboxId, token } = target;
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const unstamp = stampStyles();
    const screen = newScreen();
    view.current = screen;
    const fit = new FitAddon();
    screen.loadAddon(fit);
    screen.open(element);
    fit.fit();
    const shell = openShell({ sandboxId, token }, number, {
      size: () => ({ cols: screen.cols, rows: screen.rows }),
      onOutput: bytes => new Promise(written => screen.write(bytes, written)),
      onReplay: () => screen.reset(),
      onState: (next, why) => {
        setState(next);
        setMessage(why ?? '');
      },
    });
    const typed = screen.onData(text => shell.type(text));
    const resized = screen.onResize(size => shell.resize(size));
    const observer = new ResizeObserver(() => fit.fit());
    observer.observe(element);
    session.current = shell;
    return () => {
      observer.disconnect();
      typed.dispose();
      resized.dispose();
      shell.leave();
      screen.dispose();
      unstamp();
    };
    // It stays for as long as its tab.
  }, [sandboxId, token, number]);
  useEffect(() => {
    if (isShown) view.current?.focus();
  }, [isShown]);
  return (
    <div className="stack" style={{ gap: 8 }} hidden={!isShown}>
      <div className="row">
        <Badge tone={state === 'open' ? 'ok' : state === 'ended' ? 'idle' : 'warn'}>
          {
            { connecting: 'connecting', open: 'connected', ended: 'the shell has ended', lost: 'connecting again' }[
              state
            ]
          }
        </Badge>
        <span className="muted small grow">{message}</span>
        <button
          type="button"
          className="button"
          onClick={() => void (session.current ? session.current.end().then(onClose) : onClose())}
        >
          <X size={14} /> End this shell
        </button>
      </div>
      <div className="terminal-box" ref={place} />
    </div>
  );
}
