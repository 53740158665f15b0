import { expect, test } from 'bun:test';
import { withSandbox } from './open.ts';

/** The error of `withSandbox` when the API answers the connect with this status. */
async function failureAt(status: number, message: string): Promise<unknown> {
  const api = Bun.serve({ port: 0, fetch: () => Response.json({ code: status, message }, { status }) });
  try {
    const way = { url: `http://127.0.0.1:${api.port}`, apiKey: `e2b_${'0'.repeat(40)}`, domain: 'localhost' };
    return await withSandbox(
      () => way,
      'i0123456789abcdefghij',
      async () => 'connected',
    ).catch((error: unknown) => error);
  } finally {
    await api.stop(true);
  }
}

test.each([
  [401, 'unavailable'],
  [404, 'not_found'],
  [500, 'unavailable'],
  [503, 'unavailable'],
])('an answer %i of the API fails with a sentence', async (status, code) => {
  expect(await failureAt(status, 'the reason')).toMatchObject({
    name: 'AtollError',
    code,
    message: expect.stringContaining(status === 404 ? 'was not found' : 'the reason'),
  });
});
