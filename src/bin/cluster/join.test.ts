import { expect, test } from 'bun:test';
import { issueCertificate, makeAuthority } from '../../base/crypto/certificate.ts';
import { joinProof, newJoinToken, rejoiner } from '../../base/crypto/join-proof.ts';
import { joinAsPod, joinCluster } from './join.ts';

type Body = Record<'tokenID' | 'nodeID' | 'address' | 'publicKey', string> & {
  known?: { certificate: string; proof: string };
};

test.each(['10.0.0.1:3000', 'control', 'http://', 'ftp://control'])('%s is no URL of control', async control => {
  const asked = { control, token: newJoinToken().text, nodeId: 'n', address: 'a:1', known: undefined };
  await expect(joinCluster(asked)).rejects.toMatchObject({
    code: 'invalid',
    message: `--control is ${control} and must be the URL of control, like http://CONTROL:3000.`,
  });
});

test.each([
  [400, '{"message":"No."}', 'invalid', 'No.'],
  [401, '{"message":"No."}', 'unauthenticated', 'No.'],
  [409, '{"message":"No."}', 'conflict', 'No.'],
  [500, '<html>', 'unavailable', '500'],
  [503, '', 'unavailable', '503'],
] as const)('a refusal with %d and the body %j is said by its code', async (status, body, code, why) => {
  using control = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(body, { status }) });
  const { origin } = control.url;
  const asked = { control: origin, podToken: 'token', nodeId: 'n', address: 'a:1', known: undefined };
  await expect(joinAsPod(asked)).rejects.toMatchObject({ code, message: `Control at ${origin} refused: ${why}` });
});

test('a pod shows its token, and who answers an invitation without having made it is not believed', async () => {
  const token = newJoinToken();
  const asked: object[] = [];
  let proof = joinProof(token.key, 'node', [token.tokenId, 'c', 'a']);
  using control = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      asked.push({ path: new URL(request.url).pathname, ...((await request.json()) as object) });
      return Response.json({ certificate: 'c', authority: 'a', proof });
    },
  });
  const machine = { control: control.url.origin, nodeId: 'n', address: 'a:1', known: undefined };
  expect(await joinAsPod({ ...machine, podToken: 'pod' })).toMatchObject({ certificate: 'c', authority: 'a' });
  expect(asked).toEqual([expect.objectContaining({ path: '/cluster/join-pod', token: 'pod', nodeID: 'n' })]);
  const join = () => joinCluster({ ...machine, token: token.text });
  await expect(join()).rejects.toMatchObject({ code: 'forbidden' });
  proof = joinProof(token.key, 'control', [token.tokenId, 'other', 'a']);
  await expect(join()).rejects.toMatchObject({ code: 'forbidden' });
  proof = joinProof(token.key, 'control', [token.tokenId, 'c', 'a']);
  expect(await join()).toMatchObject({ certificate: 'c' });
});

test('a machine that has joined before proves that it is the same, and says why it is refused', async () => {
  const token = newJoinToken();
  const asked: Body[] = [];
  using control = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const body = (await request.json()) as Body;
      asked.push(body);
      if (!body.known) return Response.json({ message: 'taken' }, { status: 409 });
      const proof = joinProof(token.key, 'control', [token.tokenId, 'certificate', 'authority']);
      return Response.json({ certificate: 'certificate', authority: 'authority', proof }, { status: 201 });
    },
  });
  const identity = issueCertificate(makeAuthority('test', 1), ['node'], 1);
  const join = (known?: typeof identity & { authority: string }) =>
    joinCluster({ control: control.url.href, token: token.text, nodeId: 'n', address: 'a:1', known });
  await expect(join()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining('taken') });
  expect(await join({ ...identity, authority: 'authority' })).toMatchObject({ certificate: 'certificate' });
  const { known, publicKey } = asked[1] ?? {};
  const said = [token.tokenId, 'n', 'a:1', publicKey ?? ''];
  expect(rejoiner(known?.certificate ?? '', known?.proof ?? '', said)).toBeString();
});
