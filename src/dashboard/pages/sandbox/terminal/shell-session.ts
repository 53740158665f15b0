import { bytesOf } from '../../../parts/base64.ts';
import { callAgent, streamAgent } from '../../../api/agent.ts';
import type { Target } from '../../../api/agent.ts';
import type { Connections } from '../../../api/connections.ts';
import { ApiFailure } from '../../../api/client.ts';
import { pacedOutput } from './paced-output.ts';
import { isReport } from './reports.ts';
import type { ShellSize } from './terminal-search.ts';
import { forgetEnded, forgetShell, keepShell, keptShell, newShellTag, shellStart } from './shell-memory.ts';
import type { ShellPlace } from './shell-memory.ts';

/**
 * `waiting`: for a connection that others hold. `lost`: the connection is lost and is being retried. `ended`: the shell
 * has ended. `refused`: a shell can't start this way.
 */
export type ShellState = 'connecting' | 'waiting' | 'open' | 'lost' | 'ended' | 'refused';
type ShellView = {
  size: () => ShellSize;
  isShown: () => boolean;
  connections: Connections;
  /** Settles once the bytes are shown: faster output waits. */
  onOutput: (bytes: Uint8Array) => Promise<void>;
  /** Called when output begins to come faster than anybody reads, and when no longer. */
  onMuch: (isMuch: boolean) => void;
  /** What follows is everything that the shell has shown before. */
  onReplay: () => void;
  onState: (state: ShellState, why?: string) => void;
};

type ProcessEvent = {
  event?: {
    start?: { pid: number; replayed?: number };
    data?: { pty?: string; stdout?: string; stderr?: string };
    end?: { exitCode?: number; status?: string };
  };
};

const reconnectMs = 1_500;

/** Which shell: one of this window's own, by its number, or a process to watch. */
export type ShellChoice = { number: number } | { watched: number };

/** A process of a sandbox. Tags are unique; a PID belongs to another process once the sandbox has been restarted. */
type Selector = { tag: string } | { pid: number };

const [startMethod, connectMethod] = ['process.Process/Start', 'process.Process/Connect'];

/** The process to show: a watched one, or the shell of a place in this window, which may have to start. */
function shownProcess(choice: ShellChoice, place: ShellPlace | null) {
  const kept = place && keptShell(place);
  let tag = kept ?? newShellTag();
  let isThere = kept !== null;
  let pid = 'watched' in choice ? choice.watched : null;
  const selector = (): Selector => ('watched' in choice ? { pid: choice.watched } : { tag });
  return {
    selector,
    /** True for a watched process, and for one that has started and is not known to have ended. */
    isThere: () => place === null || isThere,
    pid: () => pid,
    onStart(started: number) {
      pid = started;
      if (!place) return;
      isThere = true;
      keepShell(place, tag);
    },
    /** Another one starts in its place, if any does. */
    onEnd() {
      if (place) forgetEnded(place);
      [tag, isThere] = [newShellTag(), false];
    },
    /** What asks for it. */
    opening(target: Target, size: ShellSize) {
      if (!place || isThere)
        return { who: target, method: connectMethod, message: { process: selector(), replay: true } };
      const { user, cwd } = shellStart(place);
      const envs = { TERM: 'xterm-256color', LANG: 'C.UTF-8' };
      const process = { cmd: '/bin/bash', args: ['-i', '-l'], envs, ...(cwd !== undefined && { cwd }) };
      return { who: { ...target, user }, method: startMethod, message: { process, pty: { size }, tag } };
    },
  };
}

/** No retry will ever succeed: there is no such user or directory. Otherwise a later one may. */
const isRefusal = (error: unknown): error is ApiFailure =>
  error instanceof ApiFailure &&
  ['invalid_argument', 'not_found', 'permission_denied', 'unauthenticated', 'failed_precondition'].includes(error.code);

const base64Of = (text: string) =>
  btoa(Array.from(new TextEncoder().encode(text), byte => String.fromCharCode(byte)).join(''));

/** A hidden window has no frames: there, output goes on by the clock, ms. */
const hiddenFrameMs = 100;

/** Settles at the next frame. */
const nextFrame = () =>
  new Promise<void>(resolve => {
    const timer = setTimeout(resolve, hiddenFrameMs);
    requestAnimationFrame(() => {
      clearTimeout(timer);
      resolve();
    });
  });

/** Limit of characters that wait for a shell to be connected: people type ahead, but nobody writes a book. */
const waitingCharactersMax = 65_536;

/**
 * Sends one message at a time, and only while it `isOpen`, so that keys arrive in the order in which they were typed.
 */
function inOrder(isOpen: () => boolean, sendOne: (text: string) => Promise<unknown>) {
  let queue = '';
  let sending = false;
  const send = async () => {
    if (sending) return;
    sending = true;
    while (queue !== '' && isOpen()) {
      const text = queue;
      queue = '';
      await sendOne(text);
    }
    sending = false;
  };
  return {
    add(text: string) {
      if (isOpen() || queue.length + text.length <= waitingCharactersMax) queue += text;
      void send();
    },
    /** Sends what has waited. */
    resume: () => void send(),
    clear() {
      queue = '';
    },
  };
}

const resizeShell = (target: Target, process: Selector, size: ShellSize) =>
  callAgent(target, 'process.Process/Update', { process, pty: { size } }).catch(() => undefined);

const typeInto = (target: Target, process: Selector, text: string) =>
  callAgent(target, 'process.Process/SendInput', { process, input: { pty: base64Of(text) } });

/** Ends a shell, which may already have ended by itself. */
const killShell = (target: Target, process: Selector) =>
  callAgent(target, 'process.Process/SendSignal', { process, signal: 'SIGNAL_SIGKILL' }).catch(() => undefined);

/** The output of a process. Without a terminal of its own, nothing has put returns before its line feeds. */
function shownBytes({ pty, stdout, stderr }: { pty?: string; stdout?: string; stderr?: string }): Uint8Array {
  if (pty !== undefined) return bytesOf(pty);
  return Uint8Array.from(
    [...bytesOf(stdout ?? ''), ...bytesOf(stderr ?? '')].flatMap(byte => (byte === 10 ? [13, 10] : [byte])),
  );
}

/**
 * A shell's output as it is shown. Replayed output contains queries to the terminal that must not be answered again.
 */
function shownOutput(view: ShellView) {
  /** Bytes of the replay still to come. */
  let toReplay = 0;
  const show = pacedOutput({
    async show(bytes) {
      await view.onOutput(bytes);
      toReplay = Math.max(0, toReplay - bytes.length);
    },
    frame: nextFrame,
    onMuch: view.onMuch,
  });
  return {
    show,
    onReplay(bytes: number) {
      toReplay = bytes;
    },
    isReplaying: () => toReplay > 0,
  };
}

/**
 * Opens a shell of this window in a sandbox, or continues one that this window had. A shell that is only watched gets
 * no keys and no size from here, and goes on when the user leaves.
 */
export function openShell(target: Target, choice: ShellChoice, view: ShellView) {
  const stop = new AbortController();
  const place = 'number' in choice ? { sandboxId: target.sandboxId, number: choice.number } : null;
  const process = shownProcess(choice, place);
  let state: ShellState = 'connecting';
  const output = shownOutput(view);
  const setState = (next: ShellState, why?: string) => {
    state = next;
    view.onState(next, why);
  };
  const keys = inOrder(
    () => state === 'open' && !stop.signal.aborted,
    // The shell's output, which goes on until then, tells whether the shell is lost.
    text =>
      typeInto(target, process.selector(), text).catch((error: Error) =>
        view.onState(state, `What was typed has not arrived: ${error.message}`),
      ),
  );
  const resize = (size: ShellSize) =>
    void (place && process.isThere() && resizeShell(target, process.selector(), size));
  const follow = async (signal: AbortSignal): Promise<void> => {
    const { who, method, message } = process.opening(target, view.size());
    for await (const { event } of streamAgent<ProcessEvent>(who, method, message, signal)) {
      if (event?.start) {
        process.onStart(event.start.pid);
        output.onReplay(event.start.replayed ?? 0);
        if (method === connectMethod) view.onReplay();
        setState('open', `process ${event.start.pid}`);
        resize(view.size());
        keys.resume();
      }
      if (event?.data) await output.show(shownBytes(event.data));
      if (event?.end) {
        process.onEnd();
        return setState('ended', event.end.status ?? '');
      }
    }
  };
  const onFailure = (error: Error) => {
    const isRefused = isRefusal(error);
    if (isRefused && !process.isThere()) return setState('refused', error.message);
    if (!isRefused || error.code !== 'not_found') return setState('lost', error.message);
    if (!place) return setState('ended', 'This process is not there any more');
    // The sandbox was restarted since, and its processes are gone. What was typed was meant for the old shell.
    keys.clear();
    process.onEnd();
    return setState('lost', 'The shell is not there any more: another one begins');
  };
  void untilDone(stop.signal, async () => {
    await inTurn(view, stop.signal, setState, signal =>
      follow(signal).catch(error => void (signal.aborted || onFailure(error))),
    );
    return state === 'ended' || state === 'refused';
  });
  return {
    type(text: string) {
      if (place && state !== 'ended' && state !== 'refused' && !(output.isReplaying() && isReport(text)))
        keys.add(text);
    },
    resize,
    /** The shell's process; null while it is not known. */
    process: () => process.pid(),
    /** Ends the shell and everything that runs in it. */
    async end() {
      stop.abort();
      if (place) forgetShell(place);
      if (place && process.isThere()) await killShell(target, process.selector());
    },
    /** Leaves the shell running. */
    leave: () => stop.abort(),
  };
}

/** Follows a shell while it may hold a connection: a hidden shell gives way to visible ones. */
async function inTurn(
  { connections, isShown }: ShellView,
  stopped: AbortSignal,
  setState: (state: ShellState, why: string) => void,
  follow: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const turn = new AbortController();
  const signal = AbortSignal.any([stopped, turn.signal]);
  const wait = () => setState('waiting', 'others have the connections that a browser has over plain HTTP');
  await connections.hold({ isShown, giveWay: () => turn.abort() }, signal, wait);
  if (!signal.aborted) await follow(signal);
  if (turn.signal.aborted) wait();
  turn.abort();
}

/** Repeats something, with a pause in between, until it says that it is done or `signal` aborts. */
async function untilDone(signal: AbortSignal, once: () => Promise<boolean>): Promise<void> {
  while (!signal.aborted && !(await once())) await new Promise(resolve => setTimeout(resolve, reconnectMs));
}
