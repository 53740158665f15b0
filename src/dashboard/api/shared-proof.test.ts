import { expect, test } from 'bun:test';
import { sharedProof } from './shared-proof.ts';

const refused = new Error('a proof is needed');
const isWanting = (error: unknown) => error === refused;

/** A session that may need a proof, and the questions it is asked. */
function scene() {
  const questions: ((isProven: boolean) => void)[] = [];
  const session = { isProven: false };
  const prove = sharedProof(() => new Promise(resolve => questions.push(resolve)));
  const act = (name: string) =>
    prove(async () => {
      if (!session.isProven) throw refused;
      return name;
    }, isWanting);
  const answer = (isProven: boolean) => {
    session.isProven = isProven;
    questions.shift()?.(isProven);
  };
  return { questions, session, prove, act, answer };
}

test('two actions that want a proof at once are one question, and both are done with its answer', async () => {
  const { questions, act, answer } = scene();
  const both = Promise.all([act('one'), act('other')]);
  await Bun.sleep(0);
  expect(questions.length).toBe(1);
  answer(true);
  expect(await both).toEqual(['one', 'other']);
  expect(questions.length).toBe(0);
});

test('what is refused after the proof that another has given is done again without a question', async () => {
  const { questions, act, answer, prove, session } = scene();
  const { promise: late, resolve: tell } = Promise.withResolvers<void>();
  let tries = 0;
  const slow = prove(async () => {
    if (tries++ === 0) {
      await late;
      throw refused;
    }
    return session.isProven;
  }, isWanting);
  const first = act('one');
  await Bun.sleep(0);
  answer(true);
  expect(await first).toBe('one');
  tell();
  expect(await slow).toBe(true);
  expect(questions.length).toBe(0);
});

test('a proof that is not given is the error of all who wait, and the next is asked anew', async () => {
  const { questions, act, answer } = scene();
  const both = Promise.allSettled([act('one'), act('other')]);
  await Bun.sleep(0);
  answer(false);
  expect((await both).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const again = act('again');
  await Bun.sleep(0);
  expect(questions.length).toBe(1);
  answer(true);
  expect(await again).toBe('again');
});

test('another error is not asked about', async () => {
  const { questions, prove } = scene();
  const fails = prove(() => Promise.reject(new Error('something else')), isWanting);
  expect(fails).rejects.toThrow('something else');
  expect(questions.length).toBe(0);
});
