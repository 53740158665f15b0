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
 * `waiting`: for a connection that others have. `lost`: the connection is, and is tried again. `ended`: the shell has
 * ended. `refused`: none can begin like this.
 */
export type ShellState = 'connecting' | 'waiting' | 'open' | 'lost' | 'ended' | 'refused';
type ShellView = {
  size: () => ShellSize;
  isShown: () => boolean;
  connections: Connections;
  /** Settles once the bytes are shown: what comes faster waits. */
  onOutput: (bytes: Uint8Array) => Promise<void>;
  /** So much comes from now on that nobody reads it as it comes, or no more. */
  onMuch: (isMuch: boolean) => void;
  /** What follows is everything that the shell has shown. */
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

/** Which shell: one of this window's own, by its number, or a process that is looked at. */
export type ShellChoice = { number: number } | { watched: number };

/** A process of a sandbox. Tags are given once; a number is another's where the sandbox has been started anew. */
type Selector = { tag: string } | { pid: number };

const [startMethod, connectMethod] = ['process.Process/Start', 'process.Process/Connect'];

/** The process that is shown: another's, or the shell of a place in this window, which may have to begin. */
function shownProcess(choice: ShellChoice, place: ShellPlace | null) {
  const kept = place && keptShell(place);
  let tag = kept ?? newShellTag();
  let isThere = kept !== null;
  let pid = 'watched' in choice ? choice.watched : null;
  const selector = (): Selector => ('watched' in choice ? { pid: choice.watched } : { tag });
  return {
    selector,
    /** Whether it is one that another has, or that has begun and is not known to have ended. */
    isThere: () => place === null || isThere,
    pid: () => pid,
    onStart(started: number) {
      pid = started;
      if (!place) return;
      isThere = true;
      keepShell(place, tag);
    },
    /** Another one begins in its place, if any does. */
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

/** Nothing that was asked in this way will ever begin: no such user, no such directory. Else it may, a little later. */
const isRefusal = (error: unknown): error is ApiFailure =>
  error instanceof ApiFailure &&
  ['invalid_argument', 'not_found', 'permission_denied', 'unauthenticated', 'failed_precondition'].includes(error.code);

const base64Of = (text: string) =>
  btoa(Array.from(new TextEncoder().encode(text), byte => String.fromCharCode(byte)).join(''));

/** A window that nobody sees has no frames: output goes on there by the clock, ms. */
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

/** Characters that wait for a shell to be connected: somebody types ahead, nobody writes a book. */
const waitingCharactersMax = 65_536;

/** Sends one message at a time, so that keys arrive in the order in which they were typed; while it `isOpen` alone. */
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

/** Ends a shell, which may have ended by itself. */
const killShell = (target: Target, process: Selector) =>
  callAgent(target, 'process.Process/SendSignal', { process, signal: 'SIGNAL_SIGKILL' }).catch(() => undefined);

/** What a process has written. Without a terminal of its own, nobody has put the returns before its new lines. */
function shownBytes({ pty, stdout, stderr }: { pty?: string; stdout?: string; stderr?: string }): Uint8Array {
  if (pty !== undefined) return bytesOf(pty);
  return Uint8Array.from(
    [...bytesOf(stdout ?? ''), ...bytesOf(stderr ?? '')].flatMap(byte => (byte === 10 ? [13, 10] : [byte])),
  );
}

/** What a shell writes, as it is shown. What is shown again has asked the terminal things that get no answer now. */
function shownOutput(view: ShellView) {
  /** Bytes of what is shown again that are to come. */
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
 * Opens a shell of this window in a sandbox, or goes on with it where this window had it. One that is only watched gets
 * no keys and no size from here, and goes on when one leaves.
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
    // Whether the shell is lost is told by what it says, which goes on until then.
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
    // The sandbox was started anew since, and its processes are gone. What was typed was meant for that shell.
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
    /** Its process; null while it is not known. */
    process: () => process.pid(),
    /** Ends the shell and what runs in it. */
    async end() {
      stop.abort();
      if (place) forgetShell(place);
      if (place && process.isThere()) await killShell(target, process.selector());
    },
    /** Leaves the shell running. */
    leave: () => stop.abort(),
  };
}

/** Follows a shell while it may have a connection: one that nobody looks at gives way to those that are shown. */
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

/** Does something again and again, with a pause, until it says that it is done, or `signal`. */
async function untilDone(signal: AbortSignal, once: () => Promise<boolean>): Promise<void> {
  while (!signal.aborted && !(await once())) await new Promise(resolve => setTimeout(resolve, reconnectMs));
}
