import { expect, test } from 'bun:test';
import { parseDockerfile } from './parse.ts';

test('stages with names, defaults of arguments and comments', () => {
  const stages = parseDockerfile(
    '# syntax=docker/dockerfile:1\nARG TAG=12\nFROM --platform=linux/amd64 debian:${TAG} AS Build\nRUN true\nfrom ' +
      'build\ncmd sleep 5\n',
  );
  expect(stages.map(({ from, name, globalArgs }) => ({ from, name, globalArgs }))).toEqual([
    { from: 'debian:${TAG}', name: 'build', globalArgs: { TAG: '12' } },
    { from: 'build', name: null, globalArgs: { TAG: '12' } },
  ]);
  expect(stages[1]?.instructions).toMatchObject([{ kind: 'cmd', command: 'sleep 5', line: 6 }]);
});

test('arguments before the first FROM lose their quotes and see those before them', () => {
  const text =
    'ARG V="3.11" W=\'$V\'\nARG BASE=python:$V-${X:-slim}\nARG V=4 NONE\nARG ARCH=$TARGETARCH\nFROM $BASE\nARG V';
  const [stage] = parseDockerfile(text);
  const globalArgs = { V: '4', W: '$V', BASE: 'python:3.11-slim', ARCH: process.arch === 'arm64' ? 'arm64' : 'amd64' };
  expect(stage).toMatchObject({ globalArgs });
  expect(Object.keys(stage?.globalArgs ?? {})).not.toContain('NONE');
});

test('what is told goes before defaults, as it is, and defaults behind it see it', () => {
  const [stage] = parseDockerfile('ARG V=1\nARG BASE=python:$V\nFROM $BASE', { V: '"$2"' });
  expect(stage?.globalArgs).toEqual({ V: '"$2"', BASE: 'python:"$2"' });
});

test('another escape character', () => {
  const [stage] = parseDockerfile('# escape=`\nFROM x\nRUN a `\n  b\\c\n');
  expect(stage?.instructions).toMatchObject([{ kind: 'run', command: 'a   b\\c' }]);
});

test('mounts of caches and temporary files; optional secrets are left out', () => {
  const [stage] = parseDockerfile(
    'FROM x\nRUN --mount=type=cache,target=/c,id=a,sharing=locked --mount=type=secret,id=s ' +
      '--mount=type=tmpfs,dst=/t make',
  );
  expect(stage?.instructions).toMatchObject([
    {
      command: 'make',
      mounts: [
        { kind: 'cache', target: '/c', id: 'a' },
        { kind: 'tmpfs', target: '/t' },
      ],
    },
  ]);
});

test('a command has the network of builds unless it wants none', () => {
  const [stage] = parseDockerfile('FROM x\nRUN --network=none --security=sandbox a\nRUN --network=default b\nRUN c');
  expect(stage?.instructions.map(each => each.kind === 'run' && [each.command, each.network])).toEqual([
    ['a', 'none'],
    ['b', undefined],
    ['c', undefined],
  ]);
});

test('a cache belongs to whom its mount says', () => {
  const [stage] = parseDockerfile(
    'FROM x\nRUN --mount=type=cache,target=/c,uid=1000,mode=0700 --mount=type=cache,target=/d,gid=5 ls',
  );
  expect(stage?.instructions).toMatchObject([
    {
      mounts: [
        { target: '/c', owner: { uid: 1000, gid: 0 }, mode: 0o700 },
        { target: '/d', owner: { uid: 0, gid: 5 } },
      ],
    },
  ]);
});

test.each([
  ['', 'has no FROM'],
  ['RUN true', 'line 1: RUN before the first FROM'],
  ['FROM a b c', 'line 1: FROM needs'],
  ['ARG A=${B:-\nFROM x', 'line 1: a variable in braces is not closed'],
  [`ARG A=${'a'.repeat(50_000)}\nARG B=$A\nARG C=$A\nFROM x`, 'line 3: the arguments before the first FROM are longer'],
  ['FROM x\n\nBREW tea', 'line 3: BREW is not an instruction'],
  ['FROM x\nRUN --mount=type=bind,target=/x ls', 'line 2: --mount=type=bind'],
  ['FROM x\nRUN --mount=type=cache,target=/x,uid=me ls', 'line 2: uid=me of --mount is no number'],
  ['FROM x\nRUN --mount=type=cache,target=/x,from=y ls', 'line 2: --mount=type=cache does not know from'],
  ['FROM x\nRUN --network=host ls', 'line 2: RUN --network=host is not supported'],
  ['FROM x\nRUN --security=insecure ls', 'line 2: RUN --security=insecure is not supported'],
  ['ARG NAME\n\nFROM ${NAME}', 'line 3: FROM ${NAME} names nothing: its ARG needs a value'],
  ['FROM x\nARG NAME=y\nFROM $NAME', 'line 3: FROM $NAME names nothing'],
  ['FROM ${NAME', 'line 1: ${NAME… is no form of a variable'],
  ['FROM x\nCOPY --from=y --parents a b', 'line 2: COPY does not know --parents'],
  ['FROM x\nADD --exclude=*.md a b', 'line 2: ADD does not know --exclude'],
  ['FROM x\nRUN', 'line 2: RUN needs an argument'],
  ['FROM x\nCOPY a', 'line 2: COPY needs a source'],
  ['FROM x\nADD https://example.com/x /x', 'line 2: ADD of an address'],
  ['FROM x\nSHELL bash', 'line 2: SHELL needs a JSON array'],
  ['FROM x\nENV A=b C', 'line 2: ENV C has no value'],
  ['FROM x\nRUN cat <<EOF\na\n', 'line 2: the here-document EOF has no end'],
])('%p is refused with its line', (text, message) => {
  expect(() => parseDockerfile(text)).toThrow(message);
});

test.each([
  ['tr a-z A-Z <<<hello', 'a here-string'],
  ['echo $((1<<n)) $((1 << n)) $((1 <<n))', 'shifts'],
  ['echo \'cout<<x;\' "a <<EOF" \\<<EOF', 'what is quoted'],
  ['echo cout<<x', 'the middle of a word'],
])('%p holds no here-document: %s', command => {
  const [stage] = parseDockerfile(`FROM x\nRUN ${command}\nRUN true`);
  expect(stage?.instructions).toMatchObject([
    { kind: 'run', command },
    { kind: 'run', command: 'true' },
  ]);
});

test.each([
  ['cat <<EOF >/x', 'EOF'],
  ['cat 3<<-"END OF IT" <&3', 'END OF IT'],
  ['cat <<EOF>/x', 'EOF'],
  ['cat <<EOF; ls', 'EOF'],
  ['cat <<\\END-1', 'END-1'],
])('%p reads a here-document', (command, name) => {
  const [stage] = parseDockerfile(`FROM x\nRUN ${command}\nRUN 1\n${name}\nRUN true`);
  expect(stage?.instructions).toMatchObject([
    { kind: 'run', command: `${command}\nRUN 1\n${name}\n`, heredocs: [] },
    { kind: 'run', command: 'true' },
  ]);
});

test('a here-document alone is the script, and files of a COPY are expanded unless their name is quoted', () => {
  const [stage] = parseDockerfile('FROM x\nRUN <<EOF\na\nEOF\nCOPY <<A <<"B" <<\\C /d/\n$a\nA\nB\nC');
  expect(stage?.instructions).toMatchObject([
    { kind: 'run', command: 'a\n', heredocs: [{ name: 'EOF' }] },
    {
      kind: 'write',
      files: [
        { name: 'A', content: '$a\n', expand: true },
        { name: 'B', content: '', expand: false },
        { name: 'C', content: '', expand: false },
      ],
    },
  ]);
});
