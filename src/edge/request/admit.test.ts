import { expect, test } from 'bun:test';
import { RequestHead } from '../../http1/request-head.ts';
import { agentPort } from '../../protocol/agent.ts';
import type { Route } from '../../protocol/directory.ts';
import { credentialsOf, refusalOfTraffic, refusalOfTunnel, refusalOfWake, type Credentials } from './admit.ts';

const route = (trafficAccessToken: string | null, accessToken: string | null) =>
  ({ ingress: { trafficAccessToken, accessToken } }) as Route;
const nothing: Credentials = { traffic: undefined, access: undefined };
const to = (port: number) => ({ sandboxId: 'sandbox', port });
const [app, agent] = [to(8080), to(agentPort)];

/** `admitted`, or what the refusal says about the header. */
type Check = typeof refusalOfTraffic;
function outcome(check: Check, ...asked: Parameters<Check>): string {
  const answer = check(...asked);
  if (answer === undefined) return 'admitted';
  expect([answer.status, answer.body?.code]).toEqual([403, 403]);
  return answer.body?.message.split(':')[0] ?? '';
}

const traffic = (state: string) => `The header e2b-traffic-access-token is ${state}`;
const access = (state: string) => `The header X-Access-Token is ${state}`;

test('traffic that is not public needs the token of the traffic', () => {
  const closed = route('t', 'a');
  const to8080 = (given: Partial<Credentials>) => outcome(refusalOfTraffic, closed, app, { ...nothing, ...given });
  expect([
    to8080({ traffic: 't' }),
    to8080({ traffic: 'a' }),
    to8080({ traffic: '' }),
    to8080({ access: 't' }),
  ]).toEqual([...['admitted', traffic('wrong'), traffic('wrong'), traffic('missing')]]);
  expect(outcome(refusalOfTraffic, route(null, 'a'), app, nothing)).toBe('admitted');
  // The agent checks its own token.
  expect(outcome(refusalOfTraffic, closed, agent, nothing)).toBe('admitted');
});

test.each([app, agent])('a connection to a port itself needs the token of the agent: port $port', port => {
  const tunnel = (given: Partial<Credentials>) =>
    outcome(refusalOfTunnel, route('t', 'a'), port, { ...nothing, ...given });
  expect([tunnel({ access: 'a' }), tunnel({ access: 't' }), tunnel({ traffic: 't' })]).toEqual([
    ...['admitted', access('wrong'), access('missing')],
  ]);
  expect(outcome(refusalOfTunnel, route('t', null), port, nothing)).toBe('admitted');
});

test('a sandbox is woken by whoever may use what the request is for', () => {
  const wake = (at: typeof app, given: Partial<Credentials>) =>
    outcome(refusalOfWake, route('t', 'a'), at, { ...nothing, ...given });
  expect([wake(app, { traffic: 't' }), wake(app, { traffic: 'a' }), wake(app, { access: 'a' })]).toEqual([
    ...['admitted', traffic('wrong'), traffic('missing')],
  ]);
  expect([wake(agent, { access: 'a' }), wake(agent, { access: 't' }), wake(agent, { traffic: 't' })]).toEqual([
    ...['admitted', access('wrong'), access('missing')],
  ]);
  expect(outcome(refusalOfWake, route('t', null), agent, nothing)).toBe('admitted');
  expect(outcome(refusalOfWake, route(null, 'a'), app, nothing)).toBe('admitted');
});

test('credentials come under either name of the field, the usual one first', () => {
  const read = (...lines: string[]) => {
    const head = new RequestHead(8);
    const bytes = Buffer.from(['GET / HTTP/1.1', 'Host: x', ...lines, '', ''].join('\r\n'));
    head.parse(bytes, 0, bytes.length);
    return credentialsOf(head.fields);
  };
  expect(read()).toEqual(nothing);
  expect(read('svc-traffic-access-token: s', 'X-Access-Token: a')).toEqual({ traffic: 's', access: 'a' });
  expect(read('svc-traffic-access-token: s', 'E2B-Traffic-Access-Token: e')).toEqual({
    traffic: 'e',
    access: undefined,
  });
});
