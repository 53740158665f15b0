import { runPart } from '../../../src/supervisor/inside.ts';

// A part that does what the test says, for tests of the supervisor.

type Orders = { doing: 'serve' | 'fail' | 'babble'; ask?: string; kept?: Map<string, string> };

runPart<Orders, string>(async ({ doing, ask, kept }, control) => {
  control.phase('starting');
  if (doing === 'fail') throw new Error('it can’t start');
  if (doing === 'babble') for (const said of [null, 1, 'text', [], {}, { kind: 'end' }, { kind: 'failed' }, { kind: 'failed', error: { code: {} } }, { kind: 'ask' }, { kind: 'phase', text: {} }]) process.send?.(said);
  const answer = ask === undefined ? undefined : await control.ask(ask, { value: 1 }).then(() => 'done', (error: Error) => error.message);
  return { about: { pid: process.pid, answer, kept: kept?.get('name') }, stop: async () => {}, update: () => loop() };
});

function loop(): void {
  for (;;) Math.random();
}
