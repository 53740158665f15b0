import { expect, test } from 'bun:test';
import { parseDockerfile } from './parse.ts';

const long = 'x'.repeat(70_000);

/** Processor time of this process, milliseconds: unlike the time of day, it does not grow while others compute. */
const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

test.each([
  ['a long file', `FROM x\n${'#'.repeat(1 << 20)}`, 'is longer than'],
  ['a long line', `FROM x\nRUN ${long}`, 'line 2: the instruction is longer than'],
  [
    'many short lines of one instruction',
    `FROM x\nRUN ${'a\\\n'.repeat(40_000)}b`,
    'line 2: the instruction is longer than',
  ],
  ['many instructions', `FROM x\n${'RUN a\n'.repeat(1_001)}`, 'more than 1000 instructions'],
  ['many stages', 'FROM x\n'.repeat(101), 'more than 100 stages'],
  ['many here-documents', `FROM x\nRUN cat ${'<<A '.repeat(40)}`, 'more than 32 here-documents'],
  ['a mount over the root', 'FROM x\nRUN --mount=type=cache,target=/ ls', "can't be shown at /"],
  ['a mount over the agent', 'FROM x\nRUN --mount=type=tmpfs,target=/./.agent/x ls', "can't be shown at"],
  ['a mount that leads upwards', 'FROM x\nRUN --mount=type=cache,target=/a/../proc ls', 'must not have ..'],
  ['a mount of another stage', 'FROM x\nRUN --mount=type=bind,from=x,source=../..,target=/x ls', '--mount=type=bind'],
])('%s is refused', (_, text, message) => {
  expect(() => parseDockerfile(text)).toThrow(message);
});

test('as much as is allowed is read', () => {
  const ends = 'A\n'.repeat(32);
  expect(() => parseDockerfile(`FROM x\nRUN cat ${'<<A '.repeat(32)}\n${ends}`)).not.toThrow();
  expect(() => parseDockerfile('FROM x\n'.repeat(100))).not.toThrow();
  expect(() => parseDockerfile(`FROM x\n${'RUN a\n'.repeat(999)}`)).not.toThrow();
});

// These inputs once took minutes. The test counts how often each character is read, not the time.
test.each([
  ['flags', `RUN ${'--a '.repeat(16_000)}x`],
  ['white space', `RUN a${' '.repeat(65_000)}b`],
  ['white space before the end of a line', `RUN a${' '.repeat(60_000)}\\\nb`],
  ['quotes', `ENV A=${`"'`.repeat(16_000)}`],
  ['arrays', `RUN ${'['.repeat(65_000)}`],
  ['open here-documents', `RUN ${'<<"a'.repeat(16_000)}`],
  ['tabs', `RUN <<-A\n${'\t'.repeat(900_000)}x\nA`],
  ['returns', `RUN a\n${'\r'.repeat(900_000)}`],
  ['comments', `RUN a\\\n${`${' '.repeat(100)}#\n`.repeat(9_000)}b`],
])('%s in thousands are read in one go', (_, text) => {
  const startedMs = cpuMs();
  try {
    parseDockerfile(`FROM x\n${text}`);
  } catch (error) {
    expect(String(error)).toContain('dockerfile: line');
  }
  // With quadratic cost, each takes from several seconds to minutes.
  expect(cpuMs() - startedMs).toBeLessThan(2_000);
});
