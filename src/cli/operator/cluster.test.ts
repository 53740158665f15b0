import { expect, test } from 'bun:test';
import { runCommandLine } from '../run.ts';
import { clusterCommands } from './cluster.ts';

const drain = { nodeID: 'n/1', mode: 'none', sandboxes: [{ sandboxID: 'i1' }, { sandboxID: 'i2' }], volumes: [] };
const kept = { sandboxes: 1, volumes: 3 };
const forgotten = { nodeID: 'n/1', lost: { sandboxes: 3, volumes: 3 }, stored: 1 };
const none = { sandboxes: 0, volumes: 0 };

/** Forgets a machine: what is requested, of whom, and what is printed. */
async function forget(
  options: string[],
  { there = { ...drain, kept } as object, answer = forgotten as object, sure = true } = {},
) {
  const asked: string[] = [];
  const questions: string[] = [];
  const commands = clusterCommands(
    async (method, path) => {
      asked.push(`${method} ${path}`);
      return method === 'GET' ? there : answer;
    },
    async (_, question) => {
      questions.push(question);
      return sure;
    },
  );
  let [out, err] = ['', ''];
  const code = await runCommandLine(['node', 'forget', 'n/1', ...options], commands, {
    out: text => void (out += text),
    err: text => void (err += text),
    isInteractive: false,
  });
  return { code, out, err, asked, questions };
}
const [read, remove] = ['GET /admin/nodes/n%2F1/drain?mode=wait', 'DELETE /admin/nodes/n%2F1'];

test('forgetting a machine tells before and after what is lost with it', async () => {
  expect(await forget([])).toEqual({
    ...{ code: 0, out: '', asked: [read, remove] },
    questions: [
      'Node n/1 is forgotten for good; what it alone has is lost: 2 sandboxes that run, 1 paused sandbox on its disk ' +
        'alone, 3 volumes without a copy. Go on?',
    ],
    err: 'Forgotten: 3 sandboxes and 3 volumes were lost. 1 paused sandbox of it is in the store.\n',
  });
  const answer = { nodeID: 'n/1', lost: { sandboxes: 1, volumes: 0 }, stored: 0 };
  const one = await forget([], { there: { ...drain, sandboxes: [{ sandboxID: 'i1' }], kept: none }, answer });
  expect(one.questions).toEqual([
    'Node n/1 is forgotten for good; what it alone has is lost: 1 sandbox that runs. Go on?',
  ]);
  expect(one.err).toBe('Forgotten: 1 sandbox was lost.\n');
});

test('a machine that has nothing is forgotten with that word', async () => {
  const there = { ...drain, sandboxes: [], kept: none };
  const answer = { nodeID: 'n/1', lost: none, stored: 2 };
  const { questions, err } = await forget([], { there, answer });
  expect(questions).toEqual(['Node n/1 is forgotten for good; it has nothing that would be lost. Go on?']);
  expect(err).toBe('Forgotten: nothing was lost. 2 paused sandboxes of it are in the store.\n');
});

test('an unsure person changes nothing, and --yes skips the question', async () => {
  expect(await forget([], { sure: false })).toMatchObject({
    ...{ code: 1, asked: [read], err: 'Nothing was changed.\n' },
  });
  expect(await forget(['--yes'], { sure: false })).toMatchObject({ code: 0, questions: [], asked: [remove] });
  const { out } = await forget(['--json']);
  expect(JSON.parse(out)).toEqual({ id: 'n/1', lost: forgotten.lost, stored: 1 });
});
