import { expect, test } from 'bun:test';
import { roles } from '../../src/protocol/api/member.ts';
import type { Role } from '../../src/protocol/api/member.ts';
import { document, routes } from '../../src/api/routes.ts';
import { newUuid, randomName, isUuid } from '../../src/base/id.ts';
import { authorizationRows } from './authorization-rows.ts';
import { Scene } from './authorization-scene.ts';
import type { Caller } from './authorization-scene.ts';

/** The credentials that each caller sends, by the document's names of the security schemes. */
const carries: Record<Caller, readonly string[]> = {
  'no key': [],
  'wrong key': [],
  'revoked key': [],
  "other team's key": ['apiKey'],
  'access token': ['accessToken'],
  'access token with team': ['accessToken', 'teamId'],
  "other team's member": ['accessToken', 'teamId'],
  'member with a foreign team': ['accessToken'],
  'wrong admin token': [],
  admin: ['adminToken'],
  'metrics token': ['metricsToken'],
  'admin with team': ['adminToken', 'teamId'],
  "volume's token": ['volumeToken'],
  "other team's volume token": ['volumeToken'],
  'right key': ['apiKey'],
  session: ['session'],
  "viewer's token with team": ['accessToken', 'teamId'],
  'session with team': ['session', 'teamId'],
  "viewer's session with team": ['session', 'teamId'],
  "developer's session with team": ['session', 'teamId'],
  "session of other team's member": ['session', 'teamId'],
  'session with a foreign team': ['session'],
  'session from a page of the same site': [],
  'session without word of the page': [],
  'expired session': [],
  "operator's session": ['operatorSession'],
  "operator's session with team": ['operatorSession', 'teamId'],
};

/** Members who are not admins of the team; every other caller of the team may do what an admin may. */
const roleOf: Partial<Record<Caller, Role>> = {
  "viewer's token with team": 'viewer',
  "viewer's session with team": 'viewer',
  "developer's session with team": 'developer',
};

type Operation = {
  operationId: string;
  'x-atoll-role'?: Role;
  security: Array<Record<string, unknown>>;
  responses: Record<string, unknown>;
};
const operations = Object.values((document as { paths: Record<string, Record<string, Operation>> }).paths).flatMap(
  path => Object.values(path),
);

test('every operation of the document has its row, and every row its operation', () => {
  expect(operations.length).toBeGreaterThan(40);
  expect(operations.map(({ operationId }) => operationId).toSorted()).toEqual(
    Object.keys(authorizationRows).toSorted(),
  );
});

test('every operation lets in whom the document says, and answers others as it does unknown ones', async () => {
  await using scene = await Scene.open();
  let cells = 0;
  let alike = 0;
  let refusedByRole = 0;
  for (const { operationId, security, responses, 'x-atoll-role': needed } of operations) {
    const row = authorizationRows[operationId];
    const route = routes.find(candidate => candidate.operationId === operationId);
    if (!row || !route) throw new Error(`${operationId} has no row or no route`);
    for (const caller of Object.keys(carries) as Caller[]) {
      const isOpen = security.length === 0;
      const isLetIn = letsIn(security, caller);
      const isForeign = caller.includes('other team');
      const role = roleOf[caller];
      // What a member does as a person is the same for every role.
      if (role !== undefined && needed === undefined) continue;
      const lacksRole = role !== undefined && needed !== undefined && roles.indexOf(role) < roles.indexOf(needed);
      if (isLetIn && lacksRole) refusedByRole++;
      const expected = isOpen ? row.success : !isLetIn ? 401 : lacksRole ? 403 : isForeign ? row.foreign : row.success;

      // A team may have only so many webhooks.
      await scene.tidy();
      const request = await row.request(scene);
      const answer = await scene.send(caller, route.method, request.path, request.body);
      expect({
        operationId,
        caller,
        status: answer.status,
        body: answer.status >= 400 ? answer.body : undefined,
      }).toMatchObject({ operationId, caller, status: expected, ...(expected >= 400 && { body: { code: expected } }) });
      expect(Object.keys(responses)).toContain(String(expected));
      cells++;

      if (!isForeign || !isLetIn || row.foreign < 400 || asksForOthers.includes(operationId)) continue;
      const unknown = unknownOf(request);
      expect({ operationId, changed: unknown.path !== request.path || unknown.body !== request.body }).toEqual({
        operationId,
        changed: true,
      });
      const unknownAnswer = await scene.send(caller, route.method, unknown.path, unknown.body);
      expect({
        operationId,
        status: unknownAnswer.status,
        text: unknown.restore(JSON.stringify(unknownAnswer.body)),
      }).toEqual({ operationId, status: answer.status, text: JSON.stringify(answer.body) });
      alike++;
    }
  }
  const ofTeams = operations.filter(operation => operation['x-atoll-role'] !== undefined).length;
  const withRole = Object.keys(roleOf).length;
  expect(cells).toBe(operations.length * (Object.keys(carries).length - withRole) + ofTeams * withRole);
  expect(refusedByRole).toBeGreaterThan(60);
  expect(alike).toBeGreaterThan(25);
}, 120_000);

function letsIn(security: Operation['security'], caller: Caller): boolean {
  // If a team is asked for, the token does not make up for the wrong one: it must not act for another team instead.
  if (caller.endsWith('with a foreign team') && security.some(alternative => 'teamId' in alternative)) return false;
  return security.some(alternative => Object.keys(alternative).every(scheme => carries[caller].includes(scheme)));
}

/** Routes that exist to tell whether another team has a thing. */
const asksForOthers = ['getTemplateAlias'];

/** The same request about things that do not exist, with IDs of the same form. */
function unknownOf(request: { path: string; body?: unknown; ids?: string[] }) {
  const replaced = (request.ids ?? []).map(id => [id, isUuid(id) ? newUuid() : randomName(id.length)] as const);
  const replace = (text: string) => replaced.reduce((changed, [id, other]) => changed.replaceAll(id, other), text);
  return {
    path: replace(request.path),
    body: request.body === undefined ? undefined : (JSON.parse(replace(JSON.stringify(request.body))) as unknown),
    restore: (text: string) => replaced.reduce((changed, [id, other]) => changed.replaceAll(other, id), text),
  };
}
