import { writeSync } from 'node:fs';
import { partDescriptor, partMessageBytesMax } from '../../../src/supervisor/channel.ts';
import { frameOf } from '../../../src/wire/frame.ts';
import { runPart } from '../../../src/supervisor/inside.ts';

// A part that does what the test says, for tests of the supervisor.

type Orders = {
  doing: 'serve' | 'fail' | 'babble' | 'overflow' | 'grow' | 'hold' | 'lie' | 'leave';
  ask?: string;
  kept?: Map<string, string>;
};

runPart<Orders, string>(async ({ doing, ask, kept }, control) => {
  control.phase('starting');
  if (doing === 'fail') throw new Error('it can’t start');
  if (doing === 'babble')
    for (const said of [
      null,
      1,
      'text',
      [],
      {},
      { kind: 'end' },
      { kind: 'failed' },
      { kind: 'failed', error: { code: {} } },
      { kind: 'ask' },
      { kind: 'phase', text: {} },
    ])
      writeSync(partDescriptor, frameOf(JSON.stringify(said), false));
  // In its own session, so that it survives whatever happens to this process.
  const left =
    doing === 'leave'
      ? Bun.spawn(['setsid', 'sleep', '1000'], { stdio: ['ignore', 'ignore', 'ignore'] }).pid
      : undefined;
  if (doing === 'grow') for (const held: Buffer[] = []; ;) held.push(Buffer.alloc(16 << 20, 1));
  if (doing === 'overflow') writeSync(partDescriptor, tooLong);
  const answer =
    ask === undefined
      ? undefined
      : await control.ask(ask, { value: 1 }).then(
          () => 'done',
          (error: Error) => error.message,
        );
  const stop = async () => {
    if (doing === 'hold') throw new Error('it can’t let go');
  };
  return {
    about: { pid: process.pid, answer, kept: kept?.get('name'), left },
    stop,
    update: () => (doing === 'lie' ? lie() : loop()),
  };
});

/** The head of a message beyond the limit: nobody waits for its end. */
const tooLong = frameOf('x'.repeat(partMessageBytesMax + 1), false).subarray(0, 5);

/** Sends its allowed messages in invalid forms, and asks for more than it may have. */
function lie(): void {
  const says = (message: unknown) => writeSync(partDescriptor, frameOf(JSON.stringify(message), false));
  for (const about of [null, 1, { pid: 1 }]) says({ kind: 'ready', about });
  for (let id = 1; id <= 100; id++) says({ kind: 'ask', id, what: 'waits', value: id });
  says({ kind: 'phase', text: 'lied\nMAINPID=1\r\u001b[2J\u009b' });
}

function loop(): void {
  for (;;) Math.random();
}
