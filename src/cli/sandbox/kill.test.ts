import { expect, test } from 'bun:test';
import { AtollError } from '../../base/error.ts';
import { runCommandLine } from '../run.ts';
import { killCommand } from './kill.ts';

/** Runs `atoll sandbox kill` while a, b and c run and some can't be ended. */
async function kill(options: string[], failing: Record<string, AtollError> = {}) {
  const [ended, lists]: [string[], string[]] = [[], []];
  const command = killCommand(
    async (method, path) => {
      const id = path.replace('/sandboxes/', '');
      const failure = failing[id];
      if (failure) throw failure;
      ended.push(`${method} ${id}`);
      return null;
    },
    async path => (lists.push(path), ['a', 'b', 'c'].map(sandboxID => ({ sandboxID }))),
  );
  let [out, err] = ['', ''];
  const code = await runCommandLine(['sandbox', 'kill', ...options], [command], {
    out: text => void (out += text),
    err: text => void (err += text),
    isInteractive: false,
  });
  return { code, out, err, ended, lists };
}

const full = new AtollError('unavailable', 'It is busy.');
const gone = new AtollError('not_found', 'It is not there.');

test('those that are named are ended, and no other', async () => {
  expect(await kill(['b'])).toEqual({ code: 0, out: '', err: 'Ended.\n', ended: ['DELETE b'], lists: [] });
  expect(await kill(['b', 'x/y'])).toMatchObject({ err: 'Ended 2 of 2.\n', ended: ['DELETE b', 'DELETE x%2Fy'] });
  const json = await kill(['--json', 'a', 'c']);
  expect(JSON.parse(json.out)).toEqual([{ sandboxID: 'a' }, { sandboxID: 'c' }]);
  expect(json.err).toBe('');
});

test('if one can’t be ended the others still are, and the exit code says so', async () => {
  const { code, err, ended } = await kill(['a', 'b', 'c'], { b: full });
  expect({ code, err }).toEqual({ code: 1, err: 'atoll sandbox kill: It is busy.\nEnded 2 of 3.\n' });
  expect(ended).toEqual(['DELETE a', 'DELETE c']);
  // A named one should have been there.
  expect(await kill(['a'], { a: gone })).toMatchObject({ code: 1, err: expect.stringContaining('It is not there.') });
});

test('--all ends what runs, whatever has ended meanwhile', async () => {
  const { code, err, ended, lists } = await kill(['--all'], { b: gone });
  expect({ code, err }).toEqual({ code: 0, err: 'Ended 3 of 3.\n' });
  expect(ended).toEqual(['DELETE a', 'DELETE c']);
  expect(lists).toEqual(['/v2/sandboxes?state=running']);
  expect((await kill(['--all', '--metadata', 'a=b c', '--metadata', 'd=e'])).lists).toEqual([
    `/v2/sandboxes?state=running&metadata=${encodeURIComponent('a=b+c&d=e')}`,
  ]);
});

test('neither, both, and metadata without --all are no command line, and end nothing', async () => {
  for (const options of [[], ['--all', 'a'], ['--metadata', 'a=b', 'a'], ['--all', '--metadata', 'a']]) {
    const { code, err, ended, lists } = await kill(options);
    expect({ code, ended, lists }).toEqual({ code: 2, ended: [], lists: [] });
    expect(err).toContain('Usage: atoll sandbox kill');
  }
});
