import { expect, test } from 'bun:test';
import { streamFailure } from './agent.ts';

test('the end of a stream keeps its code, with the status that a call with one answer would have had', () => {
  const told = ({ status, code, message }: ReturnType<typeof streamFailure>) => [status, code, message];
  expect(told(streamFailure({ code: 'not_found', message: 'gone' }))).toEqual([404, 'not_found', 'gone']);
  expect(told(streamFailure({ code: 'unavailable', message: 'later' }))).toEqual([503, 'unavailable', 'later']);
  expect(told(streamFailure({ code: 'constructor', message: 'odd' }))).toEqual([500, 'constructor', 'odd']);
  expect(told(streamFailure({}))).toEqual([500, '', 'The stream ended with an error']);
});
