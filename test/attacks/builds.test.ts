import { afterAll, beforeAll, expect } from 'bun:test';
import { archiveAttacks } from './support/build-archives.ts';
import { readyOf, refusalOf, startBuildRange, type BuildRange } from './support/build-attacks.ts';
import { rightsAttacks } from './support/build-rights.ts';
import { textAttacks } from './support/build-texts.ts';
import { registryAttacks } from './support/hostile-registry.ts';
import { attackWall, type Attack } from './support/wall.ts';

let range: BuildRange;
beforeAll(async () => void (range = await startBuildRange()), 300_000);
afterAll(() => range[Symbol.asyncDispose](), 60_000);

/** More levels up than the view of any layers is deep. */
const up = '../'.repeat(16);

/** A COPY from another stage that must be refused, and the same without the flaw, which must copy. */
const source = (name: string, lines: (secret: string) => string, honest: string): Attack => [
  `COPY --from ${name}`,
  async () => {
    refusalOf(await range.dockerfile(`FROM small AS a\nFROM small\n${lines(`${range.host}/secret`.slice(1))}`));
    readyOf(await range.dockerfile(`FROM small AS a\nFROM small\n${honest}`));
  },
];

const upwards: Attack[] = [
  source('a path upwards', secret => `COPY --from=a ${up}${secret} /stolen/`, 'COPY --from=a bin/busybox /copied/'),
  source(
    'a path upwards from the root',
    secret => `COPY --from=a /${up}${secret} /stolen/`,
    'COPY --from=a /bin/busybox /copied/',
  ),
  source(
    'a path down and up again',
    secret => `COPY --from=a bin/../${up}${secret} /stolen/`,
    'COPY --from=a ./bin/./busybox /copied/',
  ),
  source('one step up', () => 'COPY --from=a .. /stolen/', 'COPY --from=a . /copied/'),
  source('the directory above', () => `COPY --from=a ${up} /stolen/`, 'COPY --from=a / /copied/'),
  source(
    'dots of a variable',
    secret => `ARG U=..\nCOPY --from=a ${'$U/'.repeat(16)}${secret} /stolen/`,
    'ARG U=bin\nCOPY --from=a $U/busybox /copied/',
  ),
  source(
    'dots of a variable in braces',
    secret => `ENV U=..\nCOPY --from=a ${'${U}/'.repeat(16)}${secret} /stolen/`,
    'ENV U=bin\nCOPY --from=a ${U}/busybox /copied/',
  ),
  source(
    'dots put together of two variables',
    secret => `ARG D=.\nCOPY --from=a ${'$D$D/'.repeat(16)}${secret} /stolen/`,
    'ARG D=.\nCOPY --from=a $D/bin/busybox /copied/',
  ),
  source(
    'dots of a default',
    secret => `COPY --from=a ${'${N:-..}/'.repeat(16)}${secret} /stolen/`,
    'COPY --from=a ${N:-bin}/busybox /copied/',
  ),
  source(
    'dots of an alternative',
    secret => `ARG A=1\nCOPY --from=a ${'${A:+..}/'.repeat(16)}${secret} /stolen/`,
    'ARG A=1\nCOPY --from=a ${A:+bin}/busybox /copied/',
  ),
  source(
    'dots of a default within a default',
    secret => `COPY --from=a ${'${N:-${M:-..}}/'.repeat(16)}${secret} /stolen/`,
    'COPY --from=a ${N:-${M:-bin}}/busybox /copied/',
  ),
  source(
    'a whole path of a variable',
    secret => `ARG P=${up}${secret}\nCOPY --from=a $P /stolen/`,
    'ARG P=bin/busybox\nCOPY --from=a $P /copied/',
  ),
  source(
    'dots in quotes',
    secret => `COPY --from=a ${'".."/'.repeat(16)}${secret} /stolen/`,
    'COPY --from=a "bin"/busybox /copied/',
  ),
  source(
    'dots behind backslashes',
    secret => `COPY --from=a ${'\\.\\./'.repeat(16)}${secret} /stolen/`,
    'COPY --from=a \\b\\in/busybox /copied/',
  ),
  source(
    'a path upwards in a JSON array',
    secret => `COPY --from=a ["${up}${secret}", "/stolen/"]`,
    'COPY --from=a ["bin/busybox", "/copied/"]',
  ),
  source(
    'escapes of JSON',
    secret => `COPY --from=a ["${'\\u002e\\u002e/'.repeat(16)}${secret}", "/stolen/"]`,
    'COPY --from=a ["\\u0062in/busybox", "/copied/"]',
  ),
  source('a glob and then up', secret => `COPY --from=a */${up}${secret} /stolen/`, 'COPY --from=a */busybox /copied/'),
  source(
    'a glob for the dots',
    secret => `COPY --from=a ${'[.][.]/'.repeat(16)}${secret} /stolen/`,
    'COPY --from=a [b]in/busybox /copied/',
  ),
  source(
    'a question mark for each dot',
    secret => `COPY --from=a ${'??/'.repeat(16)}${secret} /stolen/`,
    'COPY --from=a b?n/busybox /copied/',
  ),
  source(
    'a dot and a star',
    secret => `COPY --from=a ${'.*/'.repeat(16)}${secret} /stolen/`,
    'COPY --from=a b*/busybox /copied/',
  ),
  source(
    'up, the second of two sources',
    secret => `COPY --from=a bin/busybox ${up}${secret} /stolen/`,
    'COPY --from=a bin/busybox bin/sh /copied/',
  ),
  source('up, by ADD', secret => `ADD --from=a ${up}${secret} /stolen/`, 'ADD --from=a bin/busybox /copied/'),
  source(
    'up, of an image',
    secret => `COPY --from=small ${up}${secret} /stolen/`,
    'COPY --from=small bin/busybox /copied/',
  ),
  source(
    'up, of a stage by number',
    secret => `COPY --from=0 ${up}${secret} /stolen/`,
    'COPY --from=0 bin/busybox /copied/',
  ),
  source(
    'a file of the running platform',
    () => `COPY --from=a ${up}proc/self/environ ${up}proc/${process.pid}/environ /stolen/`,
    'COPY --from=a bin /copied/',
  ),
  source(
    'a name of 5,000 bytes',
    () => `COPY --from=a ${'b/'.repeat(2500)}x /stolen/`,
    'COPY --from=a bin/busybox /copied/',
  ),
];

/** Links in the stage that is copied from: they lead where they would lead inside it. */
const link = (name: string, make: string, copied: (secret: string) => string): Attack => [
  `COPY --from by ${name}`,
  async () => {
    const secret = `${range.host}/secret`.slice(1);
    const outcome = await range.dockerfile(
      `FROM small AS a\nRUN echo honest > /honest && ${make.replaceAll('SECRET', secret).replaceAll('HOST', range.host.slice(1))}\nFROM small\nCOPY --from=a /honest /copied\nCOPY --from=a ${copied(secret)} /stolen/`,
    );
    // Either its target inside does not exist, or the link itself is copied.
    if (outcome.result.status === 'error') expect(refusalOf(outcome)).toMatch(/is not there|not allowed|leads upwards/);
    else
      expect(await range.builds.inside(outcome.result.state, 'cat /copied; cat /stolen/* 2>&1')).toStartWith(
        'honest\n',
      );
  },
];

const links: Attack[] = [
  link('a link upwards', `ln -s ${up}SECRET /l`, () => '/l'),
  link('a link upwards to a directory, and a file in it', `ln -s ${up}HOST /l`, () => '/l/secret'),
  link('an absolute link', 'ln -s /SECRET /l', () => '/l'),
  link('an absolute link to a directory, and a glob in it', 'ln -s /HOST /l', () => '/l/s*'),
  link('a chain of links', `ln -s ${up} /a && ln -s /a /b && ln -s b /c`, secret => `/c/${secret}`),
  link('a link to the root, and up from it', 'ln -s / /l', secret => `/l/l/l/${secret}`),
  link('a link of /proc', 'ln -s /proc/self/root /l', secret => `/l/${secret}`),
  link('a link to the first process', 'ln -s /proc/1/root /l', secret => `/l/${secret}`),
  link('a link to a descriptor', 'ln -s /proc/self/fd/0 /l', () => '/l'),
  link('links that lead to each other', 'ln -s /m /l && ln -s /l /m', () => '/l'),
  link('a link in a directory that is copied', `mkdir /d && ln -s ${up}SECRET /d/l`, () => '/d'),
  link('a link to a directory in one that is copied', `mkdir /d && ln -s ${up}HOST /d/l`, () => '/d/'),
  link(
    'a link of four thousand bytes',
    `ln -s "$(i=0; while [ $i -lt 1300 ]; do printf ../; i=$((i+1)); done)SECRET" /l`,
    () => '/l',
  ),
];

/** Write targets: they stay inside, whatever they are called. */
const target = (name: string, lines: string, look: string, shows: string): Attack => [
  name,
  async () => {
    const state = readyOf(
      await range.dockerfile(
        `FROM small AS a\nRUN echo honest > /honest\nFROM small\n${lines.replaceAll('HOST', range.host.slice(1))}`,
      ),
    );
    expect(await range.builds.inside(state, look.replaceAll('HOST', range.host.slice(1)))).toContain(shows);
  },
];

const targets: Attack[] = [
  target('a destination upwards', `COPY --from=a /honest ${up}HOST/written`, 'cat /HOST/written', 'honest'),
  target(
    'a destination upwards of a variable',
    `ARG U=..\nCOPY --from=a /honest ${'$U/'.repeat(16)}HOST/written`,
    'cat /HOST/written',
    'honest',
  ),
  target(
    'a destination by a link upwards',
    `RUN ln -s ${up}HOST /l\nCOPY --from=a /honest /l/written`,
    'cat /HOST/written',
    'honest',
  ),
  target(
    'a destination by an absolute link',
    'RUN ln -s /HOST /l\nCOPY --from=a /honest /l/written',
    'cat /HOST/written',
    'honest',
  ),
  target(
    'a destination below a link to a file that is not there',
    'RUN ln -s /HOST/written /l\nCOPY --from=a /honest /l',
    'cat /l',
    'honest',
  ),
  target('a here-document upwards', `COPY <<EOF ${up}HOST/written\nhonest\nEOF`, 'cat /HOST/written', 'honest'),
  target('WORKDIR upwards', `WORKDIR ${up}HOST/written\nRUN echo honest > here`, 'cat /HOST/written/here', 'honest'),
  target(
    'WORKDIR upwards of a variable',
    `ENV U=..\nWORKDIR ${'$U/'.repeat(16)}HOST/written\nRUN echo honest > here`,
    'cat /HOST/written/here',
    'honest',
  ),
  target(
    'WORKDIR by a link upwards',
    `RUN ln -s ${up}HOST /l\nWORKDIR /l/written\nRUN echo honest > here`,
    'cat /HOST/written/here',
    'honest',
  ),
];

attackWall({ name: 'builds', atLeast: 180, every: 5, timeoutMs: 60_000 }, [
  ...upwards,
  ...links,
  ...targets,
  ...archiveAttacks(() => range),
  ...textAttacks(() => range),
  ...registryAttacks(() => range),
  ...rightsAttacks(() => range),
]);
