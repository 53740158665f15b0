import { expect, test } from 'bun:test';
import { resumeBody } from './resume-body.ts';

test('a sandbox whose agent did not answer at its pause is booted, any other gets its memory', () => {
  expect(resumeBody({})).toEqual({ timeout: 300 });
  expect(resumeBody({ envdUnresponsiveAtPause: true })).toEqual({ timeout: 300, memory: false });
});
