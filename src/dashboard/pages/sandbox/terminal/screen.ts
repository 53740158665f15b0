import '@xterm/xterm/css/xterm.css';
import { FitAddon } from '@xterm/addon-fit';
import { SearchAddon } from '@xterm/addon-search';
import { Terminal } from '@xterm/xterm';
import type { Connections } from '../../../api/connections.ts';
import type { Target } from '../../../api/agent.ts';
import { stampStyles } from '../../../parts/style-nonce.ts';
import { keptFontPixels } from './font-size.ts';
import { openShell } from './shell-session.ts';
import type { ShellChoice, ShellState } from './shell-session.ts';
import type { ShellSize } from './terminal-search.ts';

const scrollbackLines = 5_000;

const found = { matchBackground: '#5a4a12', matchOverviewRuler: '#e4b453', activeMatchBackground: '#a87b12' };

type ScreenOptions = {
  target: Target;
  shell: ShellChoice;
  /** The size that it keeps; default: as many characters as fit. */
  size: ShellSize | null;
  isShown: () => boolean;
  connections: Connections;
  onState: (state: ShellState, why: string) => void;
};

/** A terminal that shows a shell of a sandbox. */
export type ShellScreen = {
  focus: () => void;
  setFont: (pixels: number) => void;
  /** Goes to where a text is, behind or before the last place; false where it is nowhere. */
  find: (text: string, backwards: boolean) => boolean;
  /** Forgets what was looked for. */
  endSearch: () => void;
  /** What a link to this shell says of it; null while it has none. */
  shared: () => ({ watch: number } & ShellSize) | null;
  /** Ends the shell and what runs in it. */
  end: () => Promise<void>;
  /** Takes the terminal away; the shell goes on. */
  close: () => void;
};

function newTerminal(isWatched: boolean): Terminal {
  const terminal = new Terminal({
    fontFamily: "'JetBrains Mono Variable', monospace",
    fontSize: keptFontPixels(),
    scrollback: scrollbackLines,
    screenReaderMode: true,
    // Places that were found are marked in a way that xterm still calls a proposal.
    allowProposedApi: true,
    disableStdin: isWatched,
    // What runs inside may not touch the window or its title.
    windowOptions: {},
    theme: { background: '#0d1412', foreground: '#dbe6e1', cursor: '#5fcdb8', selectionBackground: '#2c5249' },
  });
  // OSC 52 writes the clipboard: not for what runs in a sandbox.
  terminal.parser.registerOscHandler(52, () => true);
  return terminal;
}

/** Shows a shell in `element`. */
export function showShell(element: HTMLElement, options: ScreenOptions): ShellScreen {
  const { target, shell: choice, size, isShown, connections, onState } = options;
  stampStyles();
  const terminal = newTerminal('watched' in choice);
  const [fit, search] = [new FitAddon(), new SearchAddon()];
  terminal.loadAddon(fit);
  terminal.loadAddon(search);
  terminal.open(element);
  const take = () => (size ? terminal.resize(size.cols, size.rows) : fit.fit());
  take();
  const shell = openShell(target, choice, {
    size: () => ({ cols: terminal.cols, rows: terminal.rows }),
    isShown,
    connections,
    onOutput: bytes => new Promise(written => terminal.write(bytes, written)),
    // Told to who listens character by character, a flood would take most of the time, and nobody hears it out. What is
    // on the screen afterwards is told.
    onMuch(isMuch) {
      terminal.options.screenReaderMode = !isMuch;
    },
    onReplay: () => terminal.reset(),
    onState: (state, why = '') => onState(state, why),
  });
  terminal.onData(text => shell.type(text));
  terminal.onResize(next => shell.resize(next));
  const observer = new ResizeObserver(take);
  observer.observe(element);
  return {
    focus: () => terminal.focus(),
    setFont(pixels) {
      terminal.options.fontSize = pixels;
      take();
    },
    find: (text, backwards) =>
      backwards
        ? search.findPrevious(text, { decorations: { ...found, activeMatchColorOverviewRuler: '#e4b453' } })
        : search.findNext(text, { decorations: { ...found, activeMatchColorOverviewRuler: '#e4b453' } }),
    endSearch() {
      search.clearDecorations();
      terminal.clearSelection();
    },
    shared() {
      const watch = shell.process();
      return watch === null ? null : { watch, cols: terminal.cols, rows: terminal.rows };
    },
    end: () => shell.end(),
    close() {
      observer.disconnect();
      shell.leave();
      terminal.dispose();
    },
  };
}
