import { expect, test } from 'bun:test';
import { showCommands } from './show.ts';

/** What `sandbox metrics` prints besides its result when the answer has these headers. */
async function saidBeside(headers: Record<string, string>, args: string[] = []): Promise<{ out: string; err: string }> {
  const connect = () => ({ url: 'https://atoll.example', apiKey: '', domain: 'sandboxes.example' });
  const commands = showCommands(async (_method, _path, _body, onHeaders) => {
    onHeaders?.(new Headers(headers));
    return [];
  }, connect);
  const said = { out: '', err: '' };
  const command = commands.find(({ name }) => name === 'sandbox metrics');
  const code = await command?.run([...args, 'i1'], {
    out: text => void (said.out += text),
    err: text => void (said.err += text),
    isInteractive: false,
  });
  expect(code).toBe(0);
  return said;
}

test('samples that a machine out of reach has are said to be missing, beside the result', async () => {
  expect((await saidBeside({ 'X-Partial': 'true' })).err).toMatch(/^A machine .* is missing\.\n$/);
  const json = await saidBeside({ 'X-Partial': 'true' }, ['--json']);
  expect([json.out, json.err]).toEqual(['[]\n', expect.stringContaining('is missing')]);
  expect((await saidBeside({})).err).toBe('');
});
