import { expect, test } from 'bun:test';
import { runCommandLine } from '../run.ts';
import { nodeCommands } from './nodes.ts';

const sandbox = (sandboxID: string, reason?: string) => ({ sandboxID, ...(reason && { reason }) });
const volume = (name: string, reason?: string) => ({ name, ...(reason && { reason }) });
const kept = { sandboxes: 0, volumes: 0 };
const empty = { sandboxes: [], volumes: [], kept };
const some = { kept, sandboxes: [sandbox('i1'), sandbox('i2')], volumes: [volume('notes')] };
const [isBusy, hasGpu] = ['it is busy', 'it has a GPU'];
const stuck = { kept, sandboxes: [sandbox('i1'), sandbox('i2', hasGpu)], volumes: [volume('notes', isBusy)] };

/** Drains a machine; its requests get these answers in order, and the last one repeats. */
async function drain(options: string, ...answers: object[]) {
  const asked: string[] = [];
  const commands = nodeCommands(async (method, path, body) => {
    asked.push(`${method} ${path}${body ? ` ${JSON.stringify(body)}` : ''}`);
    return answers.length > 1 ? answers.shift() : answers[0];
  });
  let [out, err] = ['', ''];
  const code = await runCommandLine(`node drain n/1${options}`.split(' '), commands, {
    out: text => void (out += text),
    err: text => void (err += text),
    isInteractive: false,
  });
  return { code, out, err, asked };
}
const path = '/admin/nodes/n%2F1/drain';
const table = (done: string) =>
  [
    [`CAN'T BE ${done}`, 'BECAUSE'],
    ['i2', 'it has a GPU'],
    ['volume notes', 'it is busy'],
  ]
    .map(([what = '', why]) => `${what.padEnd(9 + done.length)}  ${why}\n`)
    .join('');

test('a machine is waited for until it is empty, and what is left is said when it changes', async () => {
  const { volumes } = some;
  expect(await drain('', some, { ...empty, volumes }, { ...empty, volumes }, empty)).toEqual({
    code: 0,
    out: '',
    err: '2 sandboxes and 1 volume are left.\n1 volume is left.\nIt is empty, and takes no new ones.\n',
    asked: [`POST ${path} {"mode":"wait"}`, ...[1, 2, 3].map(() => `GET ${path}`)],
  });
});

test('whoever does not wait is told what is left', async () => {
  const { err, asked } = await drain(' --no-wait', some);
  expect(err).toBe('It takes no new ones; 2 sandboxes and 1 volume are left.\n');
  expect(asked).toHaveLength(1);
  expect((await drain(' --no-wait', empty)).err).toBe('It is empty, and takes no new ones.\n');
});

test('a machine that runs nothing is not called empty while something is on its disk alone', async () => {
  const said = async (sandboxes: number, volumes: number) =>
    (await drain('', { ...empty, kept: { sandboxes, volumes } })).err;
  const text = (alone: string) =>
    `It runs nothing, and takes no new ones. ${alone} on its disk alone, and would be lost with it.\n`;
  expect(await said(3, 1)).toBe(text('3 paused sandboxes and 1 volume are'));
  expect(await said(1, 0)).toBe(text('1 paused sandbox is'));
  expect(await said(0, 2)).toBe(text('2 volumes are'));
});

test('a dry run changes nothing, and says what can go', async () => {
  for (const [mode, done] of [
    ['wait', 'ENDED'],
    ['pause', 'PAUSED'],
    ['move', 'MOVED'],
  ] as const)
    expect(await drain(` --dry-run --mode ${mode}`, stuck)).toEqual({
      ...{ code: 0, out: table(done), asked: [`GET ${path}?mode=${mode}`] },
      err: 'Nothing was changed: 1 of 2 sandboxes and 0 of 1 volume can go.\n',
    });
  expect(await drain(' --dry-run', empty)).toMatchObject({
    out: '',
    err: 'Nothing was changed: 0 of 0 sandboxes can go.\n',
  });
  const json = await drain(' --dry-run --json', stuck);
  expect([JSON.parse(json.out), json.err]).toEqual([stuck, table('ENDED')]);
});

test('a way that not all can go changes nothing unless it is forced', async () => {
  for (const [mode, verb] of [
    ['pause', 'pauses'],
    ['move', 'moves'],
  ] as const) {
    const { code, err, asked } = await drain(` --mode ${mode}`, stuck);
    expect({ code, asked }).toEqual({ code: 1, asked: [`GET ${path}?mode=${mode}`] });
    expect(err).toContain(`Nothing was changed. --force ${verb} the others and waits until these have ended.`);
    const changes = [`GET ${path}?mode=${mode}`, `POST ${path} {"mode":"${mode}"}`];
    expect(await drain(` --mode ${mode} --force`, stuck, empty)).toMatchObject({ code: 0, asked: changes });
    expect(await drain(` --mode ${mode}`, some, empty)).toMatchObject({ code: 0, out: '', asked: changes });
  }
});
