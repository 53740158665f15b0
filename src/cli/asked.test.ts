import { expect, test } from 'bun:test';
import { nodeCommands } from './operator/nodes.ts';
import { orphanCommands } from './operator/orphans.ts';
import { runCommandLine } from './run.ts';
import { createCommand } from './sandbox/create.ts';
import { sandboxCommands } from './sandbox/list.ts';
import { showCommands } from './sandbox/show.ts';
import { stateCommands } from './sandbox/states.ts';
import { templateChangeCommands } from './template/change.ts';
import { webhookCommands } from './webhooks.ts';

// What commands ask of the platform, and what they print of its answer.

type Asked = [method: string, path: string, body?: unknown];
const moment = '2026-01-02T03:04:05.000Z';

/** Runs a command whose requests get these answers in order; the last answer repeats. */
async function run(line: string, ...answers: unknown[]) {
  const asked: Asked[] = [];
  const request = async (method: string, path: string, body?: unknown) => {
    asked.push(body === undefined ? [method, path] : [method, path, body]);
    return answers.length > 1 ? answers.shift() : answers[0];
  };
  const list = async (path: string) => (await request('LIST', path)) as unknown[];
  const connect = () => ({ url: 'https://atoll.example:8443', apiKey: '', domain: 'sandboxes.example' });
  const commands = [
    createCommand(request),
    ...sandboxCommands(request, list),
    ...showCommands(request, connect),
    ...stateCommands(request),
    ...orphanCommands(request),
    ...webhookCommands(request),
    ...nodeCommands(request),
    ...templateChangeCommands(request),
  ];
  let [out, err] = ['', ''];
  const code = await runCommandLine(line.split(' '), commands, {
    out: text => void (out += text),
    err: text => void (err += text),
    isInteractive: false,
  });
  return { code, out, err, asked };
}

const made = { sandboxID: 'i1' };
const creates = (body: object): Asked => ['POST', '/v2/sandboxes', { templateID: 'base', ...body }];
const takes = (body: object): Asked => ['POST', '/sandboxes/i1/snapshots', body];
const taken = { snapshotID: 's:default' };
const hook = { id: 'w1', signatureSecret: 'whsec' };
const url = 'https://a.example:8/x';
const hooks = (name: string, events: string[]): Asked => ['POST', '/events/webhooks', { name, url, events }];

/** A line, what it asks for, the answer to that, what it prints as its result, and what it prints besides. */
const done: [line: string, asked: Asked, answer: unknown, out: string, err: string][] = [
  ['sandbox create', creates({}), made, 'i1\n', ''],
  ['sandbox create --auto-pause t', creates({ templateID: 't', autoPause: true }), made, 'i1\n', ''],
  ['sandbox create --timeout 60 -e A=b -e C=', creates({ timeout: 60, envVars: { A: 'b', C: '' } }), made, 'i1\n', ''],
  ['sandbox create --metadata a=b', creates({ metadata: { a: 'b' } }), made, 'i1\n', ''],
  ['sandbox pause i/1', ['POST', '/sandboxes/i%2F1/pause', {}], null, '', 'Paused.\n'],
  ['sandbox pause --without-memory i1', ['POST', '/sandboxes/i1/pause', { memory: false }], null, '', 'Paused.\n'],
  ['sandbox resume i1', ['POST', '/v2/sandboxes/i1/connect', {}], made, '', 'Running.\n'],
  ['sandbox resume --timeout 9 i1', ['POST', '/v2/sandboxes/i1/connect', { timeout: 9 }], made, '', 'Running.\n'],
  [
    'sandbox resume --without-memory i1',
    ['POST', '/v2/sandboxes/i1/connect', { memory: false }],
    made,
    '',
    'Running.\n',
  ],
  ['sandbox extend i1 90', ['POST', '/sandboxes/i1/timeout', { timeout: 90 }], null, '', 'It ends in 90 s.\n'],
  ['sandbox fork i1', ['POST', '/sandboxes/i1/fork', {}], [{ sandbox: made }], 'i1\n', ''],
  ['sandbox fork --count 2 i1', ['POST', '/sandboxes/i1/fork', { count: 2 }], [{ sandbox: made }], 'i1\n', ''],
  ['sandbox snapshot i1', takes({}), taken, 's:default\n', ''],
  ['sandbox snapshot --name n --without-memory i1', takes({ name: 'n', memory: false }), taken, 's:default\n', ''],
  ['sandbox open i1 80', ['GET', '/sandboxes/i1'], made, 'https://80-i1.sandboxes.example\n', ''],
  ['sandbox discard i/1', ['DELETE', '/admin/orphans/sandboxes/i%2F1'], null, '', 'Removed.\n'],
  ['volume discard v/1', ['DELETE', '/admin/orphans/volumes/v%2F1'], null, '', 'Removed.\n'],
  ['forget-unknown', ['POST', '/admin/orphans/forget-unknown'], null, '', 'It is deleted soon.\n'],
  [`webhook create --event a --event b ${url}`, hooks('a.example:8', ['a', 'b']), hook, 'w1\nwhsec\n', ''],
  [`webhook create --event a --name mine ${url}`, hooks('mine', ['a']), hook, 'w1\nwhsec\n', ''],
  ['webhook enable w/1', ['PATCH', '/events/webhooks/w%2F1', { enabled: true }], hook, '', 'On.\n'],
  ['webhook disable w1', ['PATCH', '/events/webhooks/w1', { enabled: false }], hook, '', 'Off.\n'],
  ['webhook delete w1', ['DELETE', '/events/webhooks/w1'], null, '', 'Deleted.\n'],
  ['webhook redeliver w1 e/1', ['POST', '/events/webhooks/w1/deliveries/e%2F1/redeliver'], null, '', 'It is sent.\n'],
  ['node cordon n/1', ['POST', '/nodes/n%2F1', { status: 'standby' }], null, '', 'It is standby.\n'],
  ['node uncordon n1', ['POST', '/nodes/n1', { status: 'ready' }], null, '', 'It is ready.\n'],
  ['template publish t/1', ['PATCH', '/v2/templates/t%2F1', { public: true }], { names: ['a', 'b'] }, 'a\nb\n', ''],
  ['template publish --private t', ['PATCH', '/v2/templates/t', { public: false }], { names: ['a'] }, 'a\n', ''],
  ['template delete t', ['DELETE', '/templates/t'], null, '', 'Deleted.\n'],
  ['template tag t:x a b', ['POST', '/templates/tags', { target: 't:x', tags: ['a', 'b'] }], {}, '', 'Tagged.\n'],
  ['template tag --remove t a', ['DELETE', '/templates/tags', { name: 't', tags: ['a'] }], null, '', 'Removed.\n'],
];

test.each(done)('atoll %s', async (line, asked, answer, out, err) => {
  expect(await run(line, answer)).toEqual({ code: 0, out, err, asked: [asked] });
});

const table = (...rows: string[]) => rows.map(row => `${row}\n`).join('');
const listed = { sandboxID: 'i1', templateID: 't', startedAt: moment, endAt: moment, cpuCount: 2, memoryMB: 512 };
const webhook = { id: 'w1', name: 'n', url, enabled: true, failing: false, events: ['a', 'b'] };
const node = { id: 'n1', status: 'ready', statusChangedAt: moment, sandboxCount: 3, version: '0.1.0' };
const machine = { cpuCount: 4, cpuPercent: 12, memoryUsedBytes: 2 ** 29, memoryTotalBytes: 2 ** 33 };
const metric = { timestamp: moment, cpuCount: 2, cpuUsedPct: 1.25, memUsed: 2 ** 20, memTotal: 2 ** 29 };

/** A line, what it asks for, the answer to that, and the resulting table. */
const shown: [line: string, asked: Asked, answer: unknown, out: string][] = [
  [
    'sandbox list',
    ['LIST', '/v2/sandboxes'],
    [
      { ...listed, state: 'running' },
      { ...listed, state: 'paused', alias: 'mine' },
    ],
    table(
      'ID  TEMPLATE  STATE    STARTED                   ENDS                      SIZE',
      `i1  t         running  ${moment}  ${moment}  2 CPU, 512 MiB`,
      `i1  mine      paused   ${moment}  -                         2 CPU, 512 MiB`,
    ),
  ],
  [
    'sandbox info i/1',
    ['GET', '/sandboxes/i%2F1'],
    { ...made, envdAccessToken: 'secret', cpuCount: 2, metadata: { a: 'b' } },
    table('sandboxID  i1', 'cpuCount   2', 'metadata   {"a":"b"}'),
  ],
  [
    'sandbox metrics i1',
    ['GET', '/sandboxes/i1/metrics'],
    [{ ...metric, diskUsed: 2 ** 30, diskTotal: 2 ** 32 }],
    table(
      'TIME                      CPU         MEMORY        DISK',
      `${moment}  1.3 % of 2  1 of 512 MiB  1024 of 4096 MiB`,
    ),
  ],
  [
    'sandbox orphans',
    ['GET', '/admin/orphans'],
    {
      sandboxes: [{ sandboxID: 'i1', setAsideAt: moment, reason: 'it hangs' }],
      volumes: [{ volumeID: 'v1', createdAt: moment }],
    },
    table(
      'KIND     ID  SINCE                     WHY',
      `sandbox  i1  ${moment}  it hangs`,
      `volume   v1  ${moment}  the database does not know it`,
    ),
  ],
  [
    'webhook list',
    ['GET', '/events/webhooks'],
    [webhook, { ...webhook, failing: true }, { ...webhook, failing: true, enabled: false }],
    table(
      'ID  NAME  STATE    URL                    EVENTS',
      `w1  n     on       ${url}  a, b`,
      `w1  n     failing  ${url}  a, b`,
      `w1  n     off      ${url}  a, b`,
    ),
  ],
  [
    'webhook deliveries w1',
    ['GET', '/events/webhooks/w1/deliveries'],
    [
      { eventId: 'e1', state: 'delivered', attempts: 1, lastStatus: 200 },
      { eventId: 'e2', state: 'pending', attempts: 0, lastStatus: null },
    ],
    table('EVENT  STATE      TRIES  STATUS', 'e1     delivered  1      200', 'e2     pending    0'),
  ],
  [
    'node list',
    ['GET', '/nodes'],
    [{ ...node, metrics: machine }],
    table(
      'ID  STATUS  SINCE                     SANDBOXES  RELEASE  CPU        MEMORY',
      `n1  ready   ${moment}  3          0.1.0    12 % of 4  0.5 of 8.0 GiB`,
    ),
  ],
  [
    'template tags t/1',
    ['GET', '/templates/t%2F1/tags'],
    [{ tag: 'stable', buildID: 'b1', createdAt: moment }],
    table('TAG     BUILD  ASSIGNED', `stable  b1     ${moment}`),
  ],
];

test.each(shown)('atoll %s shows a table, and what the API says to a program', async (line, asked, answer, out) => {
  expect(await run(line, answer)).toEqual({ code: 0, out, err: '', asked: [asked] });
  const { out: json, err } = await run(`${line} --json`, answer);
  const { envdAccessToken: _, ...told } = { ...(answer as Record<string, unknown>) };
  expect([JSON.parse(json), err]).toEqual([Array.isArray(answer) ? answer : told, '']);
});

test('failed forks are reported with their reasons and by the exit code', async () => {
  const forks = [{ sandbox: made }, { error: { message: 'It is full.' } }];
  const failed = 'One could not be made: It is full.\n';
  expect(await run('sandbox fork i1', forks)).toMatchObject({ code: 1, out: 'i1\n', err: failed });
  const json = await run('sandbox fork --json i1', forks);
  expect([json.code, JSON.parse(json.out), json.err]).toEqual([1, forks, failed]);
});

test('orphans go to the first team unless another one is named, and to none that there is not', async () => {
  const teams = [
    { teamID: 'd', slug: 'default' },
    { teamID: 'o', slug: 'other' },
  ];
  expect(await run('sandbox adopt i/1', teams, null)).toMatchObject({
    asked: [
      ['GET', '/admin/teams'],
      ['POST', '/admin/orphans/sandboxes/i%2F1/adopt', { teamID: 'd' }],
    ],
    err: 'It is paused now; connect to it to let it run.\n',
  });
  const volume = await run('volume adopt v1 --name n --team other', teams, null);
  expect([volume.asked[1], volume.err]).toEqual([
    ['POST', '/admin/orphans/volumes/v1/adopt/o', { name: 'n' }],
    'Adopted.\n',
  ]);
  for (const line of ['sandbox adopt i1 --team third', 'volume adopt v1 --name n --team third']) {
    const { code, err, asked } = await run(line, teams);
    expect([code, asked]).toEqual([1, [['GET', '/admin/teams']]]);
    expect(err).toContain('There is no team third; `atoll team list` lists them.');
  }
});

test('orphans of machines that did not answer are missing, and it is said', async () => {
  const { code, err } = await run('sandbox orphans', { sandboxes: [], volumes: [], unansweredNodeIDs: ['n1', 'n2'] });
  expect([code, err]).toEqual([0, 'There may be more on nodes that did not answer: n1, n2\n']);
});

test('a value that is no number is refused before any request', async () => {
  for (const line of [
    ...['sandbox create --timeout 1h', 'sandbox extend i1 -1', 'sandbox extend i1 1.5', 'sandbox fork --count x i1'],
    ...['sandbox resume --timeout 1e9 i1', 'sandbox open i1 0', 'sandbox open i1 65536', 'sandbox open i1 http'],
  ]) {
    const { code, asked, err } = await run(line, made);
    expect({ line, code, asked }).toEqual({ line, code: 2, asked: [] });
    expect(err).toContain('Usage: atoll sandbox');
  }
  expect((await run('sandbox open i1 65535', made)).out).toBe('https://65535-i1.sandboxes.example\n');
});
