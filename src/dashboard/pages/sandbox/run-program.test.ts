import { afterEach, expect, spyOn, test } from 'bun:test';
import { endFlag, joinEnvelope } from '../../api/envelope.ts';
import { isTarFine, runProgram } from './run-program.ts';

afterEach(() => void (fetch as unknown as { mockRestore?(): void }).mockRestore?.());

/** Runs a program for which the agent reports these events; answers its output, or its failure. */
async function run(events: object[], options: Parameters<typeof runProgram>[3] = {}): Promise<string> {
  const end = joinEnvelope('{}');
  end[0] = endFlag;
  const body = [...events.map(event => joinEnvelope(JSON.stringify({ event }))), end];
  const asked = spyOn(globalThis, 'fetch').mockImplementation((async () => new Response(new Blob(body))) as never);
  try {
    const parts = await runProgram({ sandboxId: 'i1', token: null }, 'tar', ['-c', 'a'], options);
    return await new Blob(parts).text();
  } catch (error) {
    return `fails: ${(error as Error).message}`;
  } finally {
    const sent = asked.mock.calls[0] as unknown as [string, { body: Uint8Array }];
    expect(sent[0]).toBe('/process.Process/Start');
    expect(new TextDecoder().decode(sent[1].body.subarray(5))).toBe('{"process":{"cmd":"tar","args":["-c","a"]}}');
  }
}
const stdout = (text: string) => ({ data: { stdout: btoa(text) } });
const stderr = (text: string) => ({ data: { stderr: btoa(text) } });
const ended = (exitCode?: number, status?: string) => ({ end: { exitCode, status } });

test('a program has what it wrote, whatever it says beside it', async () => {
  expect(await run([{ start: {} }, stdout('a'), stderr('hm'), stdout('b'), ended()])).toBe('ab');
  expect(await run([ended(0, 'exit status 0')])).toBe('');
});

test('one that fails fails in its own words, else in how it ended', async () => {
  expect(await run([stdout('a'), stderr(' no '), stderr('room\n'), ended(2)])).toBe('fails: no room');
  expect(await run([ended(2, 'exit status 2')])).toBe('fails: tar: exit status 2');
  expect(await run([stderr('\n'), ended(2)])).toBe('fails: tar: failed');
  const long = await run([stderr('x'.repeat(299)), stderr('yz'), stderr('never told'), ended(1)]);
  expect(long).toBe(`fails: ${'x'.repeat(299)}y`);
});

test('an end that is fine is none that fails', async () => {
  const isFine = (exitCode: number, said: string) => exitCode === 1 && said === 'hm';
  expect(await run([stdout('a'), stderr('hm'), ended(1)], { isFine })).toBe('a');
  expect(await run([stdout('a'), stderr('no'), ended(1)], { isFine })).toBe('fails: no');
});

test('a tar of what changed meanwhile is one, and one that failed is none', () => {
  expect(isTarFine(1, 'tar: src/log: file changed as we read it\n')).toBe(true);
  expect(isTarFine(1, 'tar: src/tmp: File removed before we read it\n')).toBe(true);
  expect(isTarFine(1, 'tar: src: Permission denied\n')).toBe(false);
  expect(isTarFine(2, 'tar: src/log: file changed as we read it\n')).toBe(false);
});
