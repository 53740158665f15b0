import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { AtollError } from '../../../base/error.ts';
import { tryCommand } from '../../../base/process/command.ts';
import { compilePolicy } from '../../../protocol/network/egress-policy.ts';
import type { EgressPolicy } from '../../../protocol/network/network.ts';
import { slotOf } from '../../layout.ts';
import { families, openNetlink, type Netlink } from '../../native/netlink.ts';
import { openNetworkNamespace } from '../../native/netns.ts';
import {
  changeVerdicts,
  ifKernelHas,
  kernelLacks,
  kernelUses,
  refusedPackets,
  removeObjects,
  rulesAreThere,
} from './link-verdicts.ts';
import { chainsOf, type PolicyChains } from './policy-chains.ts';
import { createPolicyTable } from './policy-table.ts';

// The kernel's own packet rules, in a network namespace that ends with the test.

let netfilter: Netlink;
let inNamespace: (...argv: string[]) => [string, ...string[]];
let end = () => {};

beforeAll(async () => {
  // It ends with this process, whatever ends that.
  const holder = Bun.spawn(['unshare', '--net', 'sh', '-c', 'echo; exec cat'], { stdin: 'pipe', stdout: 'pipe' });
  await holder.stdout.getReader().read();
  const namespace = openNetworkNamespace(holder.pid);
  netfilter = openNetlink(families.netfilter, namespace.netlinkSocket);
  inNamespace = (...argv) => ['nsenter', `--net=/proc/${holder.pid}/ns/net`, ...argv];
  end = () => {
    netfilter.close();
    namespace.close();
    holder.kill();
  };
});
afterAll(() => end());

const nft = async (script: string) => void (await tryCommand(inNamespace('nft', '-f', '-'), script));
const list = (what: string) => tryCommand(inNamespace('nft', '--terse', 'list', ...what.split(' ')));

const host = {
  resolvers: ['203.0.113.53'],
  proxyNeeds: { nameServers: [], edgePort: undefined },
  proxies: 1,
  flowsMax: 1000,
  ipv6: false,
  features: { countsFlows: false, forgetsClosed: false },
  linksNow: [],
  guards: { ways_out: ['lo'], ways_out_v6: [] },
};
const policy = (source: Partial<EgressPolicy>): PolicyChains =>
  chainsOf(compilePolicy({ internetAccess: true, ...source }), { forwardDns: false });
const [open, closed] = [policy({}), policy({ internetAccess: false })];
const denying = (address: string) => policy({ denyOut: [address] });

/** A policy table of an installation, whose scripts wait until `gate.opens`. */
function tableOf(installation: number) {
  const gate = { opens: Promise.resolve(), scripts: 0, fails: false };
  const table = createPolicyTable(installation, netfilter, async script => {
    gate.scripts++;
    await gate.opens;
    if (gate.fails) throw new Error('nft fails');
    await nft(script);
  });
  const slot = (number: number) => slotOf(installation, number);
  /** For each link, the chains that decide about it, as the kernel has them. */
  const verdicts = async () => {
    const found: Record<string, string[]> = {};
    for (const map of ['outgoing', 'incoming', 'redirect']) {
      const text = await tryCommand(
        inNamespace('nft', 'list', 'map', 'inet', `atoll${installation}`, `${map}_by_link`),
      );
      for (const [, link = '', chain = ''] of text.matchAll(/"at\d+-(\d+)" : goto (\w+)/g))
        (found[link] ??= []).push(chain);
    }
    return found;
  };
  const declares = async ({ key }: PolicyChains) => {
    const text = await list(`table inet atoll${installation}`);
    return [`set deny_${key}`, `chain out_${key}`, `chain in_${key}`].map(one => text.includes(`${one} {`));
  };
  const flush = async () => await nft('flush ruleset\n');
  return { table, gate, slot, verdicts, declares, flush };
}

const all = [true, true, true];
const none = [false, false, false];
const decides = ({ chains }: PolicyChains) =>
  [chains.outgoing, chains.incoming, chains.redirect].filter(chain => chain !== undefined);

describe('policies in the packet rules', () => {
  test('come with the table, and change with their sandbox', async () => {
    const { table, gate, slot, verdicts, declares } = tableOf(0);
    const [first, second] = [denying('1.1.1.1'), denying('1.1.1.2')];
    await table.assign(slot(1), open);
    await table.assign(slot(2), first);
    await table.assign(slot(3), closed);
    table.withdraw(slot(9));
    expect(gate.scripts).toBe(0);
    await table.install(host);
    expect(await verdicts()).toEqual({ 1: decides(open), 2: decides(first), 3: decides(closed) });
    await table.assign(slot(1), first);
    await table.assign(slot(2), second);
    await table.assign(slot(3), open);
    expect(await verdicts()).toEqual({ 1: decides(first), 2: decides(second), 3: decides(open) });
    expect([await declares(first), await declares(second)]).toEqual([all, all]);
    // One script for the table, one for the rules that were missing.
    expect(gate.scripts).toBe(2);
    table.withdraw(slot(1));
    await table.assign(slot(2), second);
    expect([await declares(first), await declares(second)]).toEqual([none, all]);
    await table.assign(slot(2), closed);
    expect([await declares(second), await verdicts()]).toEqual([none, { 2: decides(closed), 3: decides(open) }]);
  });

  test('are shared by policies with the same rules, until the last of them is gone', async () => {
    const { table, gate, slot, verdicts, declares } = tableOf(1);
    await table.install(host);
    const same = denying('1.1.1.1');
    await Promise.all([1, 2].map(number => table.assign(slot(number), denying('1.1.1.1'))));
    expect([gate.scripts, await verdicts()]).toEqual([2, { 1: decides(same), 2: decides(same) }]);
    table.withdraw(slot(1));
    expect([await declares(same), await verdicts()]).toEqual([all, { 2: decides(same) }]);
    table.withdraw(slot(2));
    table.withdraw(slot(2));
    expect(await declares(same)).toEqual(none);
    // Declared anew for the next sandbox.
    await table.assign(slot(1), same);
    expect([gate.scripts, await declares(same)]).toEqual([3, all]);
  });

  test('are put back with the table, and what needs them waits for it', async () => {
    const { table, slot, verdicts, flush, declares } = tableOf(2);
    const [first, second] = [denying('1.1.1.1'), denying('1.1.1.2')];
    await table.install(host);
    await table.assign(slot(1), first);
    await flush();
    const changed = table.assign(slot(2), first);
    const declared = table.assign(slot(3), second);
    const done = table.whenThere(() => {
      if (!rulesAreThere(netfilter, 2)) throw new Error('no such table');
      return 'done';
    });
    // There is nothing that it could be taken out of.
    table.withdraw(slot(1));
    await Promise.all([table.install(host), changed, declared]);
    expect([await done, await verdicts()]).toEqual(['done', { 2: decides(first), 3: decides(second) }]);
    expect([await declares(first), await declares(second)]).toEqual([all, all]);
  });

  test('that change while the table is being placed are in it afterwards', async () => {
    const { table, gate, slot, verdicts, declares } = tableOf(3);
    const [shared, own, fresh] = [denying('1.1.1.1'), denying('1.1.1.2'), denying('1.1.1.3')];
    await table.install(host);
    for (const number of [1, 2, 3]) await table.assign(slot(number), shared);
    await table.assign(slot(4), own);
    const { promise, resolve } = Promise.withResolvers<void>();
    gate.opens = promise;
    const installed = table.install(host);
    // Known chains change at once, in the table that is about to be replaced.
    await table.assign(slot(1), open);
    await table.assign(slot(5), shared);
    table.withdraw(slot(2));
    table.withdraw(slot(4));
    expect(await declares(own)).toEqual(none);
    const declared = table.assign(slot(6), fresh);
    resolve();
    await Promise.all([installed, declared]);
    expect(await verdicts()).toEqual({
      ...{ 1: decides(open), 3: decides(shared), 5: decides(shared), 6: decides(fresh) },
    });
    expect([await declares(shared), await declares(own), await declares(fresh)]).toEqual([all, none, all]);
  });

  test('that are declared for a sandbox that is being made are in a table that is placed meanwhile', async () => {
    const { table, gate, slot, verdicts, declares } = tableOf(4);
    const waits = denying('1.1.1.1');
    await table.install(host);
    const { promise, resolve } = Promise.withResolvers<void>();
    gate.opens = promise;
    const assigned = table.assign(slot(1), waits);
    while (gate.scripts < 2) await Bun.sleep(1);
    gate.opens = Promise.resolve();
    await table.install(host);
    expect([await declares(waits), await verdicts()]).toEqual([all, {}]);
    resolve();
    await assigned;
    expect([await declares(waits), await verdicts()]).toEqual([all, { 1: decides(waits) }]);
  });

  test('that can’t be declared leave the sandbox under the one before, and may be tried again', async () => {
    const { table, gate, slot, verdicts, declares } = tableOf(5);
    const [before, next] = [denying('1.1.1.1'), denying('1.1.1.2')];
    await table.install(host);
    await table.assign(slot(1), before);
    gate.fails = true;
    await expect(table.assign(slot(1), next)).rejects.toThrow('nft fails');
    gate.fails = false;
    expect(await verdicts()).toEqual({ 1: decides(before) });
    await table.assign(slot(1), next);
    expect([await verdicts(), await declares(before)]).toEqual([{ 1: decides(next) }, none]);
    // The map does not exist: the rules for it must not stay unused.
    const third = denying('1.1.1.3');
    await table.assign(slot(1), closed);
    const broken: PolicyChains = { ...third, chains: { ...third.chains, outgoing: 'out_nowhere' } };
    await expect(table.assign(slot(1), broken)).rejects.toThrow('errno 2');
    expect([await verdicts(), await declares(third)]).toEqual([{ 1: decides(closed) }, none]);
  });

  test('are limited in how many kinds are in force at a time', async () => {
    const { table, slot } = tableOf(6);
    const kind = (number: number): PolicyChains => ({ ...open, key: `${number}`, declarations: '# none\n' });
    for (let number = 0; number < 2048; number++) await table.assign({ ...slot(0), number }, kind(number));
    const refused = await table.assign({ ...slot(0), number: 3000 }, kind(3000)).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(AtollError);
    expect(refused).toMatchObject({ code: 'unavailable' });
    await table.assign({ ...slot(0), number: 3000 }, kind(1));
    await table.assign({ ...slot(0), number: 3001 }, open);
  });
});

function raise(error: Error): never {
  throw error;
}

/** The error that `work` throws. */
function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

test('refused packets are counted by link, while the rules are there', async () => {
  const { table, flush } = tableOf(7);
  expect(refusedPackets(netfilter, 7, 'at7-1')).toBeUndefined();
  await table.install(host);
  await nft('delete element inet atoll7 refused { "at7-1" }\n');
  await nft('add element inet atoll7 refused { "at7-1" counter packets 4294967299 bytes 9 }\n');
  expect(['at7-1', 'at7-2'].map(link => refusedPackets(netfilter, 7, link))).toEqual([4_294_967_299, 0]);
  await flush();
  expect(refusedPackets(netfilter, 7, 'at7-1')).toBeUndefined();
});

test('rules are in force if each chain that packets reach first has some', async () => {
  const { table, flush } = tableOf(8);
  expect(rulesAreThere(netfilter, 8)).toBe(false);
  await table.install(host);
  expect(rulesAreThere(netfilter, 8)).toBe(true);
  const inet = ['prerouting', 'destination_nat', 'input', 'forward', 'output', 'source_nat', 'postrouting'];
  for (const chain of [...inet.map(name => `inet atoll8 ${name}`), 'netdev atoll8 of_sandboxes']) {
    await nft(`flush chain ${chain}\n`);
    expect([chain, rulesAreThere(netfilter, 8)]).toEqual([chain, false]);
    await nft(`add rule ${chain} counter\n`);
    expect([chain, rulesAreThere(netfilter, 8)]).toEqual([chain, true]);
  }
  await nft('delete table netdev atoll8\n');
  expect(rulesAreThere(netfilter, 8)).toBe(false);
  await flush();
  expect(rulesAreThere(netfilter, 8)).toBe(false);
});

test('a missing object and one that is still in use give different errors', async () => {
  const { table, slot } = tableOf(9);
  await table.install(host);
  await table.assign(slot(1), denying('1.1.1.1'));
  const { chains } = denying('1.1.1.1');
  const used = thrownBy(() => removeObjects(netfilter, 9, { chains: [chains.outgoing ?? ''], sets: [] }));
  const gone = thrownBy(() => removeObjects(netfilter, 9, { chains: ['out_nowhere'], sets: [] }));
  const noSet = thrownBy(() => removeObjects(netfilter, 9, { chains: [], sets: ['deny_nowhere'] }));
  expect([used, gone, noSet].map(error => [kernelUses(error), kernelLacks(error)])).toEqual([
    [true, false],
    [false, true],
    [false, true],
  ]);
  const other = new Error('something else');
  expect(() => ifKernelHas(() => raise(other))).toThrow(other);
});

test('links change all at once or not at all', async () => {
  const { table, slot, verdicts } = tableOf(10);
  await table.install(host);
  await table.assign(slot(1), open);
  const change = (number: number, to: string) => ({
    ...{ map: 'outgoing' as const, interfaceName: slot(number).interfaceName },
    ...{ from: number === 1 ? 'open' : undefined, to },
  });
  expect(kernelLacks(thrownBy(() => changeVerdicts(netfilter, 10, [change(1, 'refuse'), change(2, 'nowhere')])))).toBe(
    true,
  );
  expect(await verdicts()).toEqual({ 1: ['open', 'let_in'] });
  changeVerdicts(netfilter, 10, [change(1, 'refuse'), change(2, 'open')]);
  expect(await verdicts()).toEqual({ 1: ['refuse', 'let_in'], 2: ['open'] });
  // Without a change, the kernel is not asked.
  const nobody: Netlink = { ...netfilter, exchange: () => raise(new Error('the kernel is asked')) };
  changeVerdicts(nobody, 10, [{ ...change(1, 'open'), to: 'open' }]);
  removeObjects(nobody, 10, { chains: [], sets: [] });
});
