import { expect, test } from 'bun:test';
import { withProgress } from './progress.ts';

async function shown(isInteractive: boolean, work: (onPhase: (phase: string) => void) => Promise<unknown>) {
  let err = '';
  const terminal = { out: () => {}, err: (text: string) => void (err += text), isInteractive };
  await withProgress(terminal, 'Doing it', work).catch(() => {});
  return err.replaceAll(/\(\d+ s\)/g, '(0 s)');
}

test('each phase is a line, and the end says how it went', async () => {
  const twoPhases = async (onPhase: (phase: string) => void) => {
    onPhase('reading');
    onPhase('writing');
  };
  expect(await shown(false, twoPhases)).toBe(
    '… Doing it: reading (0 s)\n… Doing it: writing (0 s)\n✓ Doing it (0 s)\n',
  );
  const fails = async (onPhase: (phase: string) => void) => {
    onPhase('reading');
    throw new Error('it is full');
  };
  expect(await shown(false, fails)).toBe('… Doing it: reading (0 s)\n✗ Doing it (0 s)\n');
  // If somebody watches, each line replaces the one before.
  expect((await shown(true, fails)).split('\r')).toHaveLength(3);
});

test('work that found nothing to do is silent, also after a while', async () => {
  expect(await shown(true, () => Bun.sleep(600))).toBe('');
});
