import { createLocalJWKSet, decodeProtectedHeader, jwtVerify, type JSONWebKeySet } from 'jose';
import { expect, test } from 'bun:test';
import { singleNode } from '../../../src/api/placement/nodes.ts';
import { noFeatures } from '../../../src/api/sandbox/features.ts';
import { tokenRenewal } from '../../../src/api/sandbox/reconcilers/token-renewal.ts';
import type { NodeProtocol } from '../../../src/protocol/node.ts';
import { onEachDatabase } from '../databases.ts';
import { Platform } from '../platform.ts';

const features = { ...noFeatures, headerRules: true, egressDomains: true, iam: true };
const iam = { tokens: { aws: { audience: 'sts.example.com', tokenType: 'JWT-SVID' } } };
const rules = {
  'sts.example.com': [{ transform: { headers: { Authorization: 'Bearer ${e2b.identity.tokens.aws}' } } }],
};
const startMs = Date.UTC(2026, 10, 22, 12);

onEachDatabase(database => {
  test('requests leave with a token of the sandbox that a standard library verifies, and get new ones in time', async () => {
    let nowMs = startMs;
    const clock = { clock: () => nowMs * 1000, steppedUs: () => 0, follow: () => {} };
    await using platform = await Platform.start({ database, features, clock });
    const { sandboxID } = await platform.createSandbox({ iam, network: { rules }, timeout: 3600 });
    const tokenAt = () =>
      platform.node.networks
        .get(sandboxID)
        ?.headerRules?.['sts.example.com']?.['Authorization']?.slice('Bearer '.length);
    const first = tokenAt() ?? '';

    const discovery = await platform.call('GET', '/.well-known/openid-configuration', undefined, { 'x-api-key': '' });
    const { issuer, jwks_uri: jwksUri } = discovery.body as { issuer: string; jwks_uri: string };
    expect(jwksUri).toStartWith(`${issuer}/`);
    const keysNow = async () =>
      createLocalJWKSet((await platform.call('GET', new URL(jwksUri).pathname)).body as JSONWebKeySet);
    const keys = await keysNow();
    const verify = (token: string, audience = 'sts.example.com') =>
      jwtVerify(token, keys, { issuer, audience, currentDate: new Date(nowMs) });
    const { payload } = await verify(first);
    expect(payload).toMatchObject({
      sub: `spiffe://localhost/team/${platform.team.teamId}/sandbox/${sandboxID}`,
      sandbox_id: sandboxID,
      team_id: platform.team.teamId,
    });
    await expect(verify(first, 'other.example.com')).rejects.toThrow('aud');
    await expect(verify(`${first.slice(0, -4)}AAAA`)).rejects.toThrow('signature');
    expect(JSON.stringify((await platform.call('GET', `/sandboxes/${sandboxID}`)).body)).not.toContain(first);

    const renew = tokenRenewal(platform.api.parts);
    nowMs += 20 * 60_000;
    await renew();
    expect((await verify(tokenAt() ?? '')).payload.exp).toBe((payload.exp ?? 0) + 15 * 60);

    // The next month's key was published before it was used to sign.
    nowMs += 30 * 24 * 3600_000;
    const other = await platform.createSandbox({ iam, network: { rules } });
    const third =
      platform.node.networks.get(other.sandboxID)?.headerRules?.['sts.example.com']?.['Authorization'] ?? '';
    await verify(third.slice('Bearer '.length));
    expect(decodeProtectedHeader(third.slice('Bearer '.length)).kid).not.toBe(decodeProtectedHeader(first).kid);
    await expect(verify(first)).rejects.toThrow('exp');
  });

  test('a sandbox that can not be given its next token is tried again, and no other one', async () => {
    let nowMs = startMs;
    const clock = { clock: () => nowMs * 1000, steppedUs: () => 0, follow: () => {} };
    await using platform = await Platform.start({ database, features, clock });
    const create = () => platform.createSandbox({ iam, network: { rules }, timeout: 3600 });
    const [{ sandboxID: first }, { sandboxID: second }] = [await create(), await create()];
    // Its own rounds would report them too.
    await platform.api.stop();
    const renew = tokenRenewal({ ...platform.api.parts, nodes: singleNode('node-1', platform.node as NodeProtocol) });
    const told: string[] = [];
    let isAway = true;
    platform.node.before = async (call, target) => {
      if (call !== 'updateNetwork' || !target) return;
      if (isAway && target.sandboxId === second) throw new Error('its machine is away');
      told.push(target.sandboxId);
    };
    await renew();
    expect(told).toEqual([]);
    nowMs += 20 * 60_000;
    for (let round = 0; round < 2; round++) await expect(renew()).rejects.toThrow('away');
    isAway = false;
    await renew();
    await renew();
    expect(told).toEqual([first, second]);
  });
});
