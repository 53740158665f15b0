/** Interval at which a slow step reports if lines can't be rewritten, ms. */
const reportEveryMs = 10_000;
const repaintEveryMs = 500;

/**
 * Does `work(tell)` and shows what is being done and for how long. `tell(text)` replaces the detail after the name. On
 * a terminal one line is rewritten; elsewhere a line is added at the start, every 10 s and at the end. Work that
 * answers `{ missing }` was able to go on without the wanted thing, and says why.
 */
export async function step(name, work, output = process.stderr) {
  const startedAt = Date.now();
  const seconds = () => Math.round((Date.now() - startedAt) / 1000);
  let detail = '';
  const live = output.isTTY === true;
  const line = () => `… ${name}${detail ? `: ${detail}` : ''} (${seconds()} s)`;
  const paint = () => output.write(`\r\x1b[K${line().slice(0, Math.max((output.columns ?? 80) - 1, 20))}`);
  if (live) paint();
  else output.write(`… ${name}\n`);
  const timer = setInterval(live ? paint : () => output.write(`${line()}\n`), live ? repaintEveryMs : reportEveryMs);
  try {
    const result = await work(text => {
      detail = text;
      if (live) paint();
    });
    const missing = result?.missing;
    const end = missing
      ? `– ${name} (${seconds()} s): it is not to be had now; ${missing}`
      : `✓ ${name} (${seconds()} s)`;
    output.write(`${live ? '\r\x1b[K' : ''}${end}\n`);
    return result;
  } catch (error) {
    output.write(`${live ? '\r\x1b[K' : ''}✗ ${name} (${seconds()} s)\n`);
    throw error;
  } finally {
    clearInterval(timer);
  }
}
