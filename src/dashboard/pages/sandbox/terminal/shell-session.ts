import { bytesOf } from '../../../parts/base64.ts';
import { callAgent, streamAgent } from '../../../api/agent.ts';
import type { Target } from '../../../api/agent.ts';
import { ApiFailure } from '../../../api/client.ts';
import { pacedOutput } from './paced-output.ts';
import { isReport } from './reports.ts';
import type { ShellSize } from './terminal-search.ts';
import { forgetShell, keepShell, keptShell, shellStart } from './shell-memory.ts';
import type { ShellPlace } from './shell-memory.ts';

/** `lost`: the connection is, and is tried again. `ended`: the shell has ended. */
export type ShellState = 'connecting' | 'open' | 'lost' | 'ended';
type ShellView = {
  size: () => ShellSize;
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

/** Asks for a shell of this window, or for the one that has a process. */
function openingOf(target: Target, place: ShellPlace | null, pid: number | null, size: ShellSize) {
  if (!place || pid !== null)
    return { who: target, method: 'process.Process/Connect', message: { process: { pid }, replay: true } };
  const { user, cwd } = shellStart(place);
  const envs = { TERM: 'xterm-256color', LANG: 'C.UTF-8' };
  const process = { cmd: '/bin/bash', args: ['-i', '-l'], envs, ...(cwd !== undefined && { cwd }) };
  return { who: { ...target, user }, method: 'process.Process/Start', message: { process, pty: { size } } };
}

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

/** Sends one message at a time, so that keys arrive in the order in which they were typed. */
function inOrder(stopped: AbortSignal, sendOne: (text: string) => Promise<unknown>) {
  let queue = '';
  let sending = false;
  return {
    add(text: string) {
      queue += text;
    },
    async send() {
      if (sending) return;
      sending = true;
      while (queue !== '' && !stopped.aborted) {
        const text = queue;
        queue = '';
        await sendOne(text);
      }
      sending = false;
    },
  };
}

const resizeShell = (target: Target, pid: number, size: ShellSize) =>
  callAgent(target, 'process.Process/Update', { process: { pid }, pty: { size } }).catch(() => undefined);

const typeInto = (target: Target, pid: number | null, text: string) =>
  callAgent(target, 'process.Process/SendInput', { process: { pid }, input: { pty: base64Of(text) } });

/** Ends a shell, which may have ended by itself. */
const killShell = (target: Target, pid: number) =>
  callAgent(target, 'process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' }).catch(
    () => undefined,
  );

/** What a process has written. Without a terminal of its own, nobody has put the returns before its new lines. */
function shownBytes({ pty, stdout, stderr }: { pty?: string; stdout?: string; stderr?: string }): Uint8Array {
  if (pty !== undefined) return bytesOf(pty);
  return Uint8Array.from(
    [...bytesOf(stdout ?? ''), ...bytesOf(stderr ?? '')].flatMap(byte => (byte === 10 ? [13, 10] : [byte])),
  );
}

/** Which shell: one of this window's own, by its number, or a process that is looked at. */
export type ShellChoice = { number: number } | { watched: number };

/**
 * Opens a shell of this window in a sandbox, or goes on with it where this window had it. One that is only watched gets
 * no keys and no size from here, and goes on when one leaves.
 */
export function openShell(target: Target, choice: ShellChoice, view: ShellView) {
  const stop = new AbortController();
  const place = 'number' in choice ? { sandboxId: target.sandboxId, number: choice.number } : null;
  let pid = 'watched' in choice ? choice.watched : place && keptShell(place);
  /** Bytes of what is shown again that are to come. What programs asked the terminal then gets no answer now. */
  let toReplay = 0;

  const show = pacedOutput({
    async show(bytes) {
      await view.onOutput(bytes);
      toReplay = Math.max(0, toReplay - bytes.length);
    },
    frame: nextFrame,
    onMuch: view.onMuch,
  });
  const follow = async (): Promise<'ended' | 'lost'> => {
    const { who, method, message } = openingOf(target, place, pid, view.size());
    for await (const { event } of streamAgent<ProcessEvent>(who, method, message, stop.signal)) {
      if (event?.start) {
        pid = event.start.pid;
        if (place) keepShell(place, pid);
        toReplay = event.start.replayed ?? 0;
        if (method === 'process.Process/Connect') view.onReplay();
        view.onState('open', `process ${pid}`);
        void resize(view.size());
      }
      if (event?.data) await show(shownBytes(event.data));
      if (event?.end) {
        view.onState('ended', event.end.status ?? '');
        return 'ended';
      }
    }
    return 'lost';
  };
  const run = async () => {
    while (!stop.signal.aborted) {
      try {
        if ((await follow()) === 'ended') return;
      } catch (error) {
        if (stop.signal.aborted) return;
        // The sandbox was started anew since, and its processes are gone.
        if (error instanceof ApiFailure && error.status === 404) {
          if (!place) return view.onState('ended', 'This process is not there any more');
          pid = null;
        }
        view.onState('lost', error instanceof Error ? error.message : '');
      }
      await new Promise(resolve => setTimeout(resolve, reconnectMs));
    }
  };
  const keys = inOrder(stop.signal, text =>
    typeInto(target, pid, text).catch((error: Error) => view.onState('lost', error.message)),
  );
  const resize = (size: ShellSize) => (pid === null || !place ? undefined : resizeShell(target, pid, size));
  void run();
  return {
    type(text: string) {
      if (!place || (toReplay > 0 && isReport(text))) return;
      keys.add(text);
      if (pid !== null) void keys.send();
    },
    resize: (size: ShellSize) => void resize(size),
    /** Its process; null while it is not known. */
    process: () => pid,
    /** Ends the shell and what runs in it. */
    async end() {
      stop.abort();
      if (!place) return;
      forgetShell(place);
      if (pid !== null) await killShell(target, pid);
      pid = null;
    },
    /** Leaves the shell running. */
    leave: () => stop.abort(),
  };
}
