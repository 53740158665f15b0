import { expect, test } from 'bun:test';
import { readProcessMessage } from './process-message.ts';

const read = (value: unknown) => readProcessMessage(Buffer.from(JSON.stringify(value)));
const nothing = {
  hasStarted: false,
  pid: undefined,
  stdout: undefined,
  stderr: undefined,
  end: undefined,
  error: undefined,
};

test('an agent’s messages are read', () => {
  expect(read({ event: { start: { pid: 7 } } })).toEqual({ ...nothing, hasStarted: true, pid: 7 });
  expect(read({ event: { start: { pid: '7' } } })).toEqual({ ...nothing, hasStarted: true });
  expect(read({ event: { data: { stderr: 'aGk=' } } })).toEqual({ ...nothing, stderr: Buffer.from('hi') });
  expect(read({ event: { end: { exitCode: -1, status: 'signal: killed' } } }).end).toEqual({
    exitCode: -1,
    status: 'signal: killed',
  });
  expect(read({ error: { code: 'invalid_argument', message: 'no' } }).error).toMatchObject({
    code: 'invalid',
    message: 'no',
  });
});

// Twenty bytes of an object with a length once became a buffer of that length, octet by octet: half a minute for 500
// MB.
test('members of another kind than the protocol has are no members', () => {
  const startedAt = process.memoryUsage().rss;
  for (const stdout of [{ length: 2_000_000_000 }, [1, 2], 7, true, null])
    expect(read({ event: { data: { stdout } } })).toEqual(nothing);
  expect(process.memoryUsage().rss - startedAt).toBeLessThan(500 << 20);
  for (const value of [null, 7, 'x', [], { event: null }, { event: { data: 'x' } }])
    expect(read(value)).toEqual(nothing);
  expect(read({ event: { end: { exitCode: '3', status: { toString: 1 } } } }).end).toEqual({
    exitCode: 0,
    status: 'exit status 0',
  });
  for (const code of ['constructor', '__proto__', 'toString', 7, null])
    expect(read({ error: { code, message: {} } }).error).toMatchObject({
      code: 'internal',
      message: 'the agent refused the command',
    });
  expect(() => readProcessMessage(Buffer.from('{'))).toThrow('no message');
});
