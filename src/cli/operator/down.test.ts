import { expect, test } from 'bun:test';
import { downCommand, type OwnInstallation, stopCommand } from './down.ts';

/** An installation that records what is done with it, and a person who answers. */
function scene(changes: { runs?: boolean; hasSandboxes?: boolean; isSure?: boolean; unreported?: string } = {}) {
  const { runs = true, hasSandboxes = true, isSure = true, unreported } = changes;
  const done: string[] = [];
  const own: OwnInstallation = {
    isThere: () => true,
    require: () => void done.push('require'),
    hasSandboxes: () => hasSandboxes,
    announceDown: goesDown => void done.push(goesDown ? 'announce' : 'run on'),
    endPlatform: () => Promise.resolve((done.push('end platform'), runs)),
    endSandboxes: ({ all }) =>
      Promise.resolve((done.push(all ? 'end all' : 'end running'), unreported === undefined ? {} : { unreported })),
  };
  const said = { out: '', err: '' };
  const terminal = {
    isInteractive: true,
    out: (text: string) => void (said.out += text),
    err: (text: string) => void (said.err += text),
  } as never;
  const down = (...args: string[]) =>
    downCommand(own, () => Promise.resolve((done.push('ask'), isSure))).run(args, terminal);
  return { done, said, down, stop: (...args: string[]) => stopCommand(own).run(args, terminal) };
}

test('a platform is stopped, and its sandboxes run on', async () => {
  const it = scene();
  expect(await it.stop()).toBe(0);
  expect(it.done).toEqual(['run on', 'end platform']);
  expect(it.said.out + it.said.err).toContain('Its sandboxes run on.');
  const none = scene({ runs: false });
  expect(await none.stop('--json')).toBe(0);
  expect(JSON.parse(none.said.out)).toEqual({ ended: false });
});

test('running sandboxes end without a question, and paused ones are kept', async () => {
  const it = scene();
  expect(await it.down()).toBe(0);
  expect(it.done).toEqual(['require', 'announce', 'end platform', 'end running']);
  expect(it.said.out + it.said.err).toContain('Paused ones are kept');
});

test('paused sandboxes are removed only by who is sure', async () => {
  const unsure = scene({ isSure: false });
  expect(await unsure.down('--all')).toBe(1);
  expect(unsure.done).toEqual(['require', 'ask']);
  expect(unsure.said.err).toBe('Nothing was changed.\n');
  const sure = scene();
  expect(await sure.down('--all', '--json')).toBe(0);
  expect(sure.done).toEqual(['require', 'ask', 'announce', 'end platform', 'end all']);
  expect(JSON.parse(sure.said.out)).toEqual({ ended: true, removed: 'all' });
  const beforehand = scene({ isSure: false });
  expect(await beforehand.down('--all', '--yes')).toBe(0);
  expect(beforehand.done).toEqual(['require', 'announce', 'end platform', 'end all']);
});

test('a control process ends none: its sandboxes are at the machines of its cluster', async () => {
  const it = scene({ hasSandboxes: false, runs: false });
  expect(await it.down('--json')).toBe(0);
  expect(it.done).toEqual(['require', 'run on', 'end platform']);
  expect(JSON.parse(it.said.out)).toEqual({ ended: false, removed: 'none' });
  expect(it.said.err).not.toContain('The platform has ended');
});

test('a database that can’t be told of the end of sandboxes is named', async () => {
  const it = scene({ unreported: 'no connection' });
  expect(await it.down()).toBe(0);
  expect(it.said.err).toContain('The platform has ended.\n');
  expect(it.said.err).toContain('the next start finds those sandboxes gone: no connection\n');
});
