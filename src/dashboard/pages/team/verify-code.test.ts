import { expect, test } from 'bun:test';
import { createHmac } from 'node:crypto';
import { verifyCode } from './verify-code.ts';

const seconds = String(Math.floor(Date.now() / 1000));
const body = '{"type":"sandbox.lifecycle.killed"}';
const secrets = ['a secret of sixteen or more', `whsec_${Buffer.from('a key of bytes').toString('base64')}`];

/** A delivery as the platform signs it. */
function headersBy(secret: string): Record<string, string> {
  const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : secret;
  const signature = createHmac('sha256', key).update(`evt.${seconds}.${body}`).digest('base64');
  return { 'webhook-id': 'evt', 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` };
}

const cases = secrets.flatMap(secret => [
  [secret, headersBy(secret), body],
  [secret, headersBy(secret), body.replace('killed', 'paused')],
  [secret, { ...headersBy(secret), 'webhook-timestamp': '1' }, body],
  [secret, { 'webhook-id': 'evt', 'webhook-timestamp': seconds }, body],
]);
const expected = '[true,false,false,false,true,false,false,false]';

function run(command: string[], program: string): string {
  const { stdout, stderr } = Bun.spawnSync([...command, program], { env: { ...process.env } });
  return stdout.toString().trim() || stderr.toString();
}

test('programs of the page tell genuine deliveries from others', () => {
  const given = JSON.stringify(cases);
  const js = `${verifyCode['JavaScript']}\nconsole.log(JSON.stringify(${given}.map(one => isGenuine(...one))));`;
  expect(run(['node', '--input-type=module', '-e'], js)).toBe(expected);
  const python = [
    'import json',
    verifyCode['Python'],
    `answers = [is_genuine(*one) for one in json.loads(${JSON.stringify(given)})]`,
    "print(json.dumps(answers, separators=(',', ':')))",
  ].join('\n');
  expect(run(['python3', '-c'], python)).toBe(expected);
});
