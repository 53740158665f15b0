import type { Terminal } from './command.ts';

/** Interval of messages about a slow step if lines can't be rewritten, milliseconds. */
const reportEveryMs = 10_000;
const repaintEveryMs = 500;
const eraseLine = '\r\x1b[K';

/**
 * Runs `work(onPhase)` and shows its phases with their seconds, from the first call of `onPhase` on: a step that finds
 * nothing to do stays silent.
 */
export async function withProgress<T>(
  terminal: Terminal,
  title: string,
  work: (onPhase: (phase: string) => void) => Promise<T>,
): Promise<T> {
  const startedAtMs = performance.now();
  let phase: string | undefined;
  const seconds = () => Math.round((performance.now() - startedAtMs) / 1000);
  const show = () => {
    if (phase === undefined) return;
    const line = `… ${title}: ${phase} (${seconds()} s)`;
    terminal.err(terminal.isInteractive ? eraseLine + line : `${line}\n`);
  };
  const timer = setInterval(show, terminal.isInteractive ? repaintEveryMs : reportEveryMs);
  const end = (mark: string) => {
    clearInterval(timer);
    if (phase !== undefined)
      terminal.err(`${terminal.isInteractive ? eraseLine : ''}${mark} ${title} (${seconds()} s)\n`);
  };
  try {
    const result = await work(next => {
      phase = next;
      show();
    });
    end('✓');
    return result;
  } catch (error) {
    end('✗');
    throw error;
  }
}
