import { runPart } from '../../../src/supervisor/inside.ts';

// A part that does what the test says, for tests of the supervisor.

type Orders = { doing: 'serve' | 'fail'; ask?: string };

runPart<Orders, string>(async ({ doing, ask }, control) => {
  control.phase('starting');
  if (doing === 'fail') throw new Error('it can’t start');
  const answer = ask === undefined ? undefined : await control.ask(ask, { value: 1 }).then(() => 'done', (error: Error) => error.message);
  return { about: { pid: process.pid, answer }, stop: async () => {}, update: () => loop() };
});

function loop(): void {
  for (;;) Math.random();
}
