import { expect, test } from 'bun:test';
import { slowRepetition } from './repetition.ts';
import { isTest, sourceFiles, type SourceFile } from './source-files.ts';

/**
 * A stranger's text is read once, left to right. A repetition that may begin at many places and fail at each reads it
 * once for each of them: 64 KiB of blanks take seconds, 1 MiB minutes. Exemptions are listed with the reason, and
 * looked up again here, so that the list does not outlive what it excuses.
 */
const exempt: Record<string, string> = {
  'src/bin/spans.ts /\\/+$/': 'an address in the operator’s settings',
  'src/node/builds/authorities.ts /-----BEGIN CERTIFICATE-----[\\s\\S]*?-----END CERTIFICATE-----/g':
    'the operator’s file of authorities',
  'src/node/builds/base-rootfs/apt-sources.ts /\\n\\s*\\n/': 'the machine’s own list of sources',
  'src/agent/journal/mask.ts secrets by their form':
    'each repetition is bounded, and texts of the journal are: test/fuzz has them as a target',
};

/** Patterns that are assembled from texts, and what bounds them. */
const composed: Record<string, string> = {
  'src/dashboard/pages/sandbox/logs/logs-search.ts':
    'of whoever looks, in their own browser, over at most 2,000 lines that are shown and 100,000 that they download',
  'src/dashboard/files/editor/tokens.ts':
    'of a file that somebody opens, in their own browser, up to 262,144 characters; nothing in it goes back over what it has read',
  'src/node/metrics/machine.ts': 'files of the kernel',
  'src/node/network/rules/policy-chains.ts': 'what nft says about our own rules',
  'src/node/cgroup/cgroup.ts': 'files of the kernel',
  'src/agent/sandbox/cgroup.ts': 'files of the kernel',
  'src/agent/journal/mask.ts': 'bounded repetitions over bounded texts: test/fuzz has them as a target',
  'src/agent/files/multipart.ts':
    'a header of at most 16 KiB, whose quotes end each attempt: test/fuzz has them as a target',
};

const files = sourceFiles(['src']).filter(({ path }) => !isTest(path));
const literal =
  /(?<=[=(,:[!&|?{};\n>]\s*|return\s+)\/((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])*)\/([dgimsuvy]*)/g;
const schemaPattern = /\bpattern: '((?:\\.|[^'\\\n])*)'/g;

type Found = { where: string; pattern: RegExp };

function patternsIn({ path, text }: SourceFile): Found[] {
  const literals = [...text.matchAll(literal)].flatMap(([whole, source = '', flags = '']) => {
    try {
      return [
        {
          where: `${path} ${whole.includes('eyJ') ? 'secrets by their form' : whole}`,
          pattern: new RegExp(source, flags),
        },
      ];
    } catch {
      return []; // a division, or a part of a template
    }
  });
  const schemas = [...text.matchAll(schemaPattern)].map(([, source = '']) => ({
    where: `${path} '${source}'`,
    pattern: new RegExp(source.replaceAll('\\\\', '\\'), 'u'),
  }));
  return [...literals, ...schemas];
}

test('no repetition can begin at many places of a stranger’s text', () => {
  const found = files.flatMap(patternsIn);
  expect(found.length).toBeGreaterThan(200);
  const slow = found.flatMap(({ where, pattern }) => {
    const repetition = slowRepetition(pattern);
    return repetition === undefined ? [] : [{ where, repetition }];
  });
  expect(slow.filter(({ where }) => !(where in exempt))).toEqual([]);
  expect(Object.keys(exempt).filter(where => !slow.some(other => other.where === where))).toEqual([]);
});

test('patterns that are put together are few, and bounded otherwise', () => {
  const using = files.filter(({ code }) => /\bnew RegExp\(/.test(code)).map(({ path }) => path);
  expect(using.sort()).toEqual(Object.keys(composed).sort());
});

test.each([
  /\s+$/,
  /[ \t]+$/,
  /\r+$/,
  /(\w+)="/g,
  /^[ \t]+|[ \t]+$/g,
  /^bytes=\s*(\d*)\s*-/,
  /^basic +([a-z ]*) *$/,
  /\$\{[^}]*\}/,
  /a.*b/,
  /^(a+)+$/,
  /^(\w*)*;/,
  /\n*$/,
  /(?:,\s*)+;/,
  /[\w-]{8,4096}!/,
])('%p is found', pattern => {
  expect(slowRepetition(pattern)).toBeString();
});

test.each([
  /^\s+/,
  /x(\s+)$/,
  /^[a-z0-9-]+(\.[a-z0-9-]+)*$/,
  /^(\w+)\s*=\s*(\d+)$/,
  /\s/,
  /[^\x20-\x7e]/g,
  /^[\w-]+\.[\w-]+$/,
  /[?#].*$/s,
  /\d{1,5}$/,
  /^[^:]*:/,
  /a+/g,
  /\s*\n/y,
  /^\d+(?:,\d+)*$/,
  /"[^"]{1,40}"/,
  /(?:x|y)$/,
])('%p is not', pattern => {
  expect(slowRepetition(pattern)).toBeUndefined();
});
