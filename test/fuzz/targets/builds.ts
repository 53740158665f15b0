import { parseDockerfile } from '../../../src/builder/dockerfile/parse.ts';
import { readInstructions } from '../../../src/builder/dockerfile/instructions.ts';
import { jsonForm, splitWords, takeFlags } from '../../../src/builder/dockerfile/words.ts';
import { createLineSplitter } from '../../../src/node/builds/build-log.ts';
import { expandText, expandWord, textCharactersMax, wordCharactersMax } from '../../../src/base/dockerfile/expand.ts';
import { readChallenge } from '../../../src/builder/image/challenge.ts';
import { readImage } from '../../../src/builder/image/manifest.ts';
import { parseImageReference } from '../../../src/node/builds/image/reference.ts';
import { shortened } from '../../../src/node/builds/label.ts';
import { sha256Hex } from '../../../src/base/crypto/secret.ts';
import { resultOrCode, valueOrCode } from '../engine/errors.ts';
import { cutIntoPieces } from '../engine/pieces.ts';
import { agree, holds, type Target } from '../engine/target.ts';

const variables: Record<string, string> = { A: 'a b', EMPTY: '', LONG: 'x'.repeat(500), QUOTE: `"'\\$` };
const lookUp = (name: string) => (Object.hasOwn(variables, name) ? variables[name] : undefined);

export const dockerfileWords: Target = {
  name: 'dockerfile-words',
  corpus: [
    '$A ${A} ${B:-default} ${A:+other} "quoted $A" \'$A\' \\$A',
    '--from=a --chown=1:2 a b',
    '["a", "b"]',
    '${A:-${B:-${C}}}',
    'a\\ b "c\\"d"',
  ],
  dictionary: ['${', '}', ':-', ':+', '$A', '$LONG', '${LONG:+', '\\', '"', "'", '--mount=', '<<EOF'],
  pumps: [
    { prefix: '', unit: '${A:-', suffix: '' },
    { prefix: '', unit: '${A:-', suffix: '}'.repeat(1000) },
    { prefix: '', unit: '$LONG', suffix: '' },
    { prefix: '', unit: '--a=b ', suffix: '' },
    { prefix: '', unit: '"', suffix: '' },
    { prefix: '', unit: '--a', suffix: '' },
    { prefix: '', unit: ' ', suffix: 'x' },
    { prefix: '--a', unit: ' ', suffix: '' },
  ],
  check(input) {
    const text = input.toString();
    const word = valueOrCode(() => expandWord(text, lookUp), ['invalid']);
    const whole = valueOrCode(() => expandText(text, lookUp), ['invalid']);
    if ('value' in word) holds(word.value.length <= wordCharactersMax + text.length, 'a word is bounded');
    if ('value' in whole) holds(whole.value.length <= textCharactersMax + text.length, 'a text is bounded');
    const words = splitWords(text, '\\');
    holds(words.join('').length <= text.length && words.every(part => part !== ''), 'words are what the text has');
    agree(words.join('').replace(/\s/g, ''), text.replace(/\s/g, ''), 'nothing but white space is lost');
    const { flags, rest } = takeFlags(text);
    holds(rest.length <= text.length && !/^--[a-z][a-z-]{0,31}(=\S*)?(\s|$)/.test(rest), 'all flags are taken');
    const form = jsonForm(text);
    holds(form === null || form.every(part => typeof part === 'string'), 'a form holds texts');
    return `${'value' in word} ${flags.size > 0} ${form !== null}`;
  },
};

export const dockerfiles: Target = {
  name: 'dockerfiles',
  corpus: [
    'FROM debian:12 AS base\nARG A=b\nENV X=1 Y="two words"\nRUN --mount=type=cache,target=/c apt-get \\\n  # comment\n  update\nCOPY --from=base --chown=1:2 a b /c/\nCMD ["a"]\n',
    '# escape=`\nARG V=12\nFROM debian:${V}\nRUN <<EOF\necho hi\nEOF\nCOPY <<-"A" <<B /d/\n\ttext\nA\nmore\nB\nWORKDIR /x\nUSER u:g\nSHELL ["/bin/sh"]\nENTRYPOINT a b\n',
    'FROM scratch\r\nADD a b\r\nLABEL x=y\r\nEXPOSE 80\r\n',
  ],
  dictionary: [
    'FROM ',
    'RUN ',
    'COPY ',
    'ADD ',
    'ENV ',
    'ARG ',
    '<<EOF',
    '<<-EOF',
    '\nEOF\n',
    '--from=',
    '--mount=type=',
    '\\\n',
    '# escape=`\n',
    '#',
    'AS ',
    '["',
    'HEALTHCHECK ',
    'ONBUILD ',
  ],
  pumps: [
    { prefix: 'FROM a\n', unit: 'RUN a\n', suffix: '' },
    { prefix: 'FROM a\nRUN', unit: ' \\\n', suffix: '' },
    { prefix: 'FROM a\nRUN a', unit: ' ', suffix: 'b\n' },
    { prefix: 'FROM a\nRUN ', unit: '--mount=type=tmpfs,target=/a ', suffix: 'b\n' },
    { prefix: 'FROM a\nRUN ', unit: '<<E ', suffix: '\nE\n' },
    { prefix: 'FROM a\nCOPY ', unit: 'a ', suffix: '/b\n' },
    { prefix: 'FROM a\nENV ', unit: 'A=b ', suffix: '\n' },
    { prefix: 'FROM a\n', unit: '#\n', suffix: '' },
    { prefix: 'FROM a\nENV A ', unit: '\t', suffix: '' },
    { prefix: 'FROM a\nRUN <<E\n', unit: 'line\n', suffix: 'E\n' },
    { prefix: '', unit: '\n', suffix: 'FROM a' },
    { prefix: 'FROM a\nARG ', unit: '$', suffix: '' },
  ],
  work: input => parseDockerfile(input.toString()),
  check(input) {
    const source = input.toString();
    const parsed = valueOrCode(() => parseDockerfile(source), ['invalid']);
    if ('code' in parsed) return parsed.code;
    holds(parsed.value.length > 0 && parsed.value.every(({ from }) => from !== ''), 'a stage has an image');
    const lines = source.split('\n').length;
    for (const { instructions } of parsed.value) {
      for (const { line, text } of instructions)
        holds(line >= 1 && line <= lines && typeof text === 'string', 'an instruction has a place');
      const inline = instructions.flatMap(instruction =>
        instruction.kind === 'write' ? instruction.files : instruction.kind === 'run' ? instruction.heredocs : [],
      );
      holds(
        inline.reduce((sum, { content }) => sum + content.length, 0) <= 2 * source.length + inline.length,
        'what is inline is in the file',
      );
    }
    return [...new Set(parsed.value.flatMap(({ instructions }) => instructions.map(({ kind }) => kind)))]
      .sort()
      .slice(0, 3)
      .join();
  },
};

export const heredocs: Target = {
  name: 'heredocs',
  corpus: ['RUN <<EOF\na\nEOF', 'RUN <<-"A" <<B \\\n  c\n\ta\nA\nb\nB\n', 'COPY <<a /b\nc'],
  dictionary: ['<<', '<<-', '"EOF"', 'EOF', '\n', '\t', '\\\n'],
  pumps: [
    { prefix: '', unit: '<<', suffix: '' },
    { prefix: '', unit: '<<A ', suffix: '\nA' },
    { prefix: 'RUN <<A\n', unit: '\t', suffix: '' },
    { prefix: '', unit: 'a \\\n', suffix: '' },
    { prefix: 'a', unit: ' ', suffix: 'b' },
    { prefix: '', unit: '<<a\n', suffix: '' },
    { prefix: '<<', unit: 'a', suffix: '"' },
  ],
  work: input => readInstructions(input.toString('latin1')),
  check(input) {
    const text = input.toString();
    const read = valueOrCode(() => readInstructions(text), ['invalid']);
    if ('code' in read) return read.code;
    const { instructions } = read.value;
    holds(
      instructions.reduce(
        (sum, { keyword, argument, following }) => sum + keyword.length + argument.length + following.length,
        0,
      ) <=
        2 * text.length,
      'instructions are what is there',
    );
    const documents = instructions.flatMap(instruction => instruction.heredocs);
    holds(
      documents.reduce((sum, { content }) => sum + content.length, 0) <= text.length + documents.length,
      'documents are what is there',
    );
    holds(
      instructions.every(({ line }, index) => line > (instructions[index - 1]?.line ?? 0)),
      'instructions are in order',
    );
    return `${Math.min(instructions.length, 3)} instructions, ${Math.min(documents.length, 3)} documents`;
  },
};

export const buildOutput: Target = {
  name: 'build-output',
  corpus: ['one\ntwo\r\n', '10%\r20%\r100%\r\n', '\r\r\r\n', 'é\n'],
  dictionary: ['\r', '\n', '\r\n', '\xc3'],
  pumps: [
    { prefix: '', unit: '\r', suffix: 'x' },
    { prefix: '', unit: '\n', suffix: '' },
    { prefix: 'a', unit: '\r', suffix: 'b\n' },
    { prefix: '', unit: 'a', suffix: '' },
    { prefix: '', unit: ' ', suffix: 'x' },
  ],
  check(input, random) {
    const read = (pieces: readonly Uint8Array[]) => {
      const lines: string[] = [];
      const splitter = createLineSplitter(line => void lines.push(line));
      for (const piece of pieces) splitter.take('stdout', piece);
      splitter.end();
      return lines;
    };
    const lines = read([input]);
    agree(read(cutIntoPieces(input, random)), lines, 'the lines are the same in pieces');
    holds(
      lines.every(line => !/[\r\n]/.test(line)),
      'a line is one',
    );
    shortened(input.toString());
    return `${Math.min(lines.length, 3)} lines`;
  },
};

export const imageNames: Target = {
  name: 'image-names',
  corpus: [
    'debian',
    'ghcr.io/owner/name:tag',
    `localhost:5000/a/b@sha256:${'0'.repeat(64)}`,
    'docker.io/library/debian:12',
    'index.docker.io/x/y',
  ],
  dictionary: [':', '@sha256:', '/', 'localhost', '__', '--', '.', ':65535'],
  pumps: [
    { prefix: '', unit: 'a-', suffix: '' },
    { prefix: 'a', unit: '_', suffix: '!' },
    { prefix: '', unit: 'a.', suffix: '/' },
    { prefix: '', unit: ' ', suffix: 'a' },
  ],
  check(input) {
    const parsed = valueOrCode(() => parseImageReference(input.toString()), ['invalid']);
    if ('code' in parsed) return parsed.code;
    const { registry, repository, version, text } = parsed.value;
    holds(
      /^[a-zA-Z0-9.:-]+$/.test(registry) && /^[a-z0-9._/-]+$/.test(repository) && /^[\w.:-]+$/.test(version),
      'nothing of a name changes an address',
    );
    holds(
      !repository.split('/').some(part => part === '' || part === '.' || part === '..'),
      'no part of a name leads elsewhere',
    );
    agree(parseImageReference(text), parsed.value, 'a name with its defaults says the same');
    return `accepted ${registry === 'docker.io'} ${version.startsWith('sha256:')}`;
  },
};

export const registryChallenges: Target = {
  name: 'registry-challenges',
  corpus: [
    'Bearer realm="https://auth.example/token",service="registry",scope="repository:a:pull"',
    'Basic realm="x"',
    'Bearer realm=https://a/b , service = x',
    'Negotiate',
  ],
  dictionary: ['Bearer ', 'realm="', 'service=', '",', '\\"', ', '],
  pumps: [
    { prefix: 'Bearer ', unit: 'a', suffix: '' },
    { prefix: 'Bearer ', unit: 'a=', suffix: '' },
    { prefix: 'Bearer ', unit: 'a="b",', suffix: '' },
    { prefix: '', unit: ' ', suffix: '' },
    { prefix: 'Bearer ', unit: 'a="', suffix: '' },
  ],
  check(input) {
    const { scheme, parameters } = readChallenge(input.toString('latin1'));
    holds(/^[a-z0-9_-]*$/.test(scheme), 'a scheme is a word');
    holds(
      [...parameters].every(([name, value]) => /^[a-z0-9_-]+$/.test(name) && value.length <= 4096),
      'parameters have names',
    );
    return `${scheme === ''} ${Math.min(parameters.size, 3)}`;
  },
};

/** A manifest and a configuration, in two lines; the digests in them are corrected. */
export const imageManifests: Target = {
  name: 'image-manifests',
  corpus: [
    `{"config":{"digest":"CONFIG"},"layers":[{"digest":"sha256:${'1'.repeat(64)}","size":5}]}\n{"config":{"Env":["A=b","C"]},"rootfs":{"diff_ids":["sha256:${'2'.repeat(64)}"]}}`,
    '{"manifests":[{"digest":"CONFIG","platform":{"architecture":"amd64","os":"linux"}}]}\n{}',
    '{"config":{"digest":"CONFIG"},"layers":[]}\n{"config":null,"rootfs":{"diff_ids":[]}}',
  ],
  dictionary: [
    'null',
    '{}',
    '[]',
    '"CONFIG"',
    '"manifests":',
    '"layers":',
    '"config":',
    '"digest":',
    '"Env":',
    '"rootfs":',
    '"diff_ids":',
    '"platform":',
    '-1',
    '"size":',
    '1e999',
  ],
  workBytesMax: 16 << 10,
  async check(input) {
    const [manifest = '', config = ''] = input.toString().split('\n');
    const digest = `sha256:${sha256Hex(Buffer.from(config))}`;
    const bytes = Buffer.from(manifest.replaceAll('CONFIG', digest));
    const store = {
      manifest: async () => bytes,
      blob: async () =>
        (async function* () {
          yield Buffer.from(config);
        })(),
    };
    const read = await resultOrCode(() => readImage(store, 'latest'), ['invalid', 'not_found']);
    if ('code' in read) return read.code;
    const { env, layers } = read.value;
    holds(
      layers.every(
        layer =>
          /^sha256:[0-9a-f]{64}$/.test(layer.digest) &&
          /^sha256:[0-9a-f]{64}$/.test(layer.diffId) &&
          Number.isSafeInteger(layer.size) &&
          layer.size >= 0,
      ),
      'a layer has its digests and a size',
    );
    holds(
      Object.values(env).every(value => typeof value === 'string'),
      'variables are texts',
    );
    return `accepted ${layers.length > 0}`;
  },
};
