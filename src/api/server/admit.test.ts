import { expect, test } from 'bun:test';
import type { Role } from '../../protocol/api/member.ts';
import type { Caller } from '../credential/caller.ts';
import { admit } from './admit.ts';

const nowUs = 1e15;
const minuteUs = 60_000_000;
const deps = { clock: () => nowUs };
const of = (role: Role, provenAtUs: number | null = null) => ({ kind: 'team', role, provenAtUs }) as Caller;
const operator = (provenAtUs: number | null) => ({ kind: 'admin', provenAtUs }) as Caller;
const scraper: Caller = { kind: 'scraper', actor: null };
type Needs = Parameters<typeof admit>[1];
const needs = (role: Role, proof = false) => ({ role, proof }) as Needs;

test('a member may do what the role allows, and what lesser roles do', () => {
  const order: Role[] = ['viewer', 'developer', 'admin'];
  for (const [at, own] of order.entries())
    for (const [wanted, role] of order.entries()) {
      if (at >= wanted) admit(deps, needs(role), of(own));
      else
        expect(() => admit(deps, needs(role), of(own))).toThrow(
          `This takes the role "${role}" in the team; yours is "${own}"`,
        );
    }
});

test('a non-member of a team has no role to lack', () => {
  for (const caller of [operator(null), scraper]) admit(deps, needs('admin'), caller);
});

test('a session must prove again whose it is, where that is required and the last proof is old', () => {
  const [lately, longAgo] = [nowUs - 9 * minuteUs, nowUs - 11 * minuteUs];
  for (const caller of [of('admin', longAgo), operator(longAgo)]) {
    expect(() => admit(deps, needs('admin', true), caller)).toThrow(
      expect.objectContaining({ code: 'forbidden', detail: 'proof_needed' }),
    );
    admit(deps, needs('admin'), caller);
  }
  // Keys and tokens prove themselves with each request.
  for (const caller of [of('admin', lately), operator(lately), of('admin'), operator(null), scraper])
    admit(deps, needs('admin', true), caller);
});
