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
  /** Scrolls to the next occurrence of a text, after or before the last one; false if there is none. */
  find: (text: string, backwards: boolean) => boolean;
  /** Forgets the search. */
  endSearch: () => void;
  /** What a link to this shell contains; null while there is none. */
  shared: () => ({ watch: number } & ShellSize) | null;
  /** Ends the shell and everything that runs in it. */
  end: () => Promise<void>;
  /** Removes the terminal; the shell goes on. */
  close: () => void;
};

function newTerminal(isWatched: boolean): Terminal {
  const terminal = new Terminal({
    fontFamily: "'JetBrains Mono Variable', monospace",
    fontSize: keptFontPixels(),
    scrollback: scrollbackLines,
    screenReaderMode: true,
    // Marking found places uses an API that xterm still calls proposed.
    allowProposedApi: true,
    disableStdin: isWatched,
    // Programs inside must not control the window or its title.
    windowOptions: {},
    theme: { background: '#0d1412', foreground: '#dbe6e1', cursor: '#5fcdb8', selectionBackground: '#2c5249' },
  });
  // OSC 52 writes the clipboard: programs in a sandbox must not.
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
    // Announcing a flood to a screen reader character by character would take most of the time, and nobody listens to
    // the end. The screen's content afterwards is announced.
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
