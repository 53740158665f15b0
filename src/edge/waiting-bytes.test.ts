import { expect, test } from 'bun:test';
import { WaitingBytes } from './waiting-bytes.ts';

/** Accounts by name, each `group/number`, and the names of those that were ended. */
function opened(max: number) {
  const waiting = new WaitingBytes(max);
  const ended: string[] = [];
  const open = (name: string) => waiting.account(name.split('/')[0] ?? '', () => void ended.push(name));
  return { open, ended };
}

test('where too much waits, the one ends that has waited longest in the group with the most', async () => {
  const { open, ended } = opened(100);
  const [small, first, second] = ['small/1', 'large/1', 'large/2'].map(open);
  small?.set(30);
  first?.set(30);
  second?.set(40);
  await Promise.resolve();
  expect(ended).toEqual([]);
  second?.set(41);
  await Promise.resolve();
  expect(ended).toEqual(['large/1']);
});

test('whoever was served begins to wait anew; whoever has ended or left counts no more', async () => {
  const { open, ended } = opened(100);
  const [first, second, third] = ['a/1', 'a/2', 'a/3'].map(open);
  first?.set(40);
  second?.set(40);
  first?.set(0);
  first?.set(40);
  third?.set(40);
  first?.set(40);
  second?.set(90);
  third?.close();
  open('a/4').set(60);
  await Promise.resolve();
  expect(ended).toEqual(['a/2']);
});

test('what waits moves with its connection to another group', async () => {
  const { open, ended } = opened(100);
  const [first, second] = ['a/1', 'b/1'].map(open);
  first?.set(60);
  second?.set(30);
  first?.moveTo('b');
  open('a/2').set(40);
  await Promise.resolve();
  expect(ended).toEqual(['b/1']);
});

test('one connection that has more than all may have ends itself', async () => {
  const { open, ended } = opened(100);
  open('a/1').set(101);
  await Promise.resolve();
  expect(ended).toEqual(['a/1']);
});
