import { afterAll, beforeAll, expect, test } from 'bun:test';
import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { statusOf } from '../../src/base/error.ts';
import { allFenced, isProgram, marks, notRun } from '../docs/code-blocks.ts';
import { repository } from '../support/platform.ts';
import { runToEnd } from '../support/process.ts';
import { isTest, sourceFiles } from './source-files.ts';

// The documentation as a site: every page is there, every link leads somewhere, every operation of the API has a page.

const folder = mkdtempSync(join(tmpdir(), 'atoll-site-'));
const site = join(folder, 'site');
const build = (output: string, root: string) =>
  runToEnd([process.execPath, join(repository, 'scripts/docs/build.mjs'), output, root]);

beforeAll(async () => {
  mkdirSync(site);
  const { exitCode, stderr } = await build(site, repository);
  expect(stderr).toBe('');
  expect(exitCode).toBe(0);
});
afterAll(() => rmSync(folder, { recursive: true }));

const pages = () =>
  readdirSync(site, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.html'))
    .map(name => join(site, name));

/** Where the links of a page lead, and which names a link to it can have. */
function linksOf(path: string) {
  const names = new Set<string>();
  const hrefs: string[] = [];
  new HTMLRewriter()
    .on('[id]', { element: element => void names.add(element.getAttribute('id') ?? '') })
    .on('a[href], link[href]', { element: element => void hrefs.push(element.getAttribute('href') ?? '') })
    .on('img[src]', { element: element => void hrefs.push(element.getAttribute('src') ?? '') })
    .transform(readFileSync(path, 'utf8'));
  return { names, hrefs };
}

test('every link of the site leads to a file of it, and to a heading that is there', () => {
  const all = new Map(pages().map(path => [path, linksOf(path)] as const));
  const dead = [...all].flatMap(([path, { hrefs }]) =>
    hrefs
      .filter(href => !/^https?:/.test(href))
      .filter(href => {
        const [file = '', name] = href.split('#');
        const target = file === '' ? path : resolve(dirname(path), file);
        return !existsSync(target) || (name !== undefined && !all.get(target)?.names.has(name));
      })
      .map(href => `${path}: ${href}`),
  );
  expect(dead).toEqual([]);
  expect(all.size).toBeGreaterThan(100);
});

test('every operation has a page that says what it takes, and pages have no script', () => {
  const document = JSON.parse(readFileSync(join(repository, 'docs/openapi.json'), 'utf8')) as {
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  for (const operation of Object.values(document.paths).flatMap(methods => Object.values(methods)))
    expect(existsSync(join(site, 'api', `${operation.operationId}.html`)), operation.operationId).toBe(true);
  const create = readFileSync(join(site, 'api/createSandbox.html'), 'utf8');
  expect(create).toContain('<code>network.allowOut</code>');
  expect(create).toContain('<code>templateID</code></td><td>string, required');
  // What the API's document says is text on the page.
  expect(pages().filter(path => /<script/i.test(readFileSync(path, 'utf8')))).toEqual([]);
});

test('a link that leads nowhere and a page that nobody leads to are errors', async () => {
  const copy = join(folder, 'copy');
  mkdirSync(join(copy, 'scripts'), { recursive: true });
  for (const name of readdirSync(repository).filter(name => name.endsWith('.md')))
    cpSync(join(repository, name), join(copy, name));
  cpSync(join(repository, 'docs'), join(copy, 'docs'), { recursive: true });
  cpSync(join(repository, 'scripts/docs'), join(copy, 'scripts/docs'), { recursive: true });
  appendFileSync(join(copy, 'docs/logs.md'), '\n[a](none.md) [b](metrics.md#none) [c](metrics.md)\n');
  cpSync(join(copy, 'docs/logs.md'), join(copy, 'docs/alone.md'));
  const { exitCode, stderr } = await build(join(folder, 'refused'), copy);
  expect(exitCode).toBe(1);
  expect(stderr.trim().split('\n')).toEqual([
    'docs/alone.md is in no list of scripts/docs/contents.mjs',
    'docs/logs.md: none.md leads nowhere',
    'docs/logs.md: metrics.md#none: no such heading there',
  ]);
  expect(existsSync(join(folder, 'refused'))).toBe(false);
});

test('every block of the documentation is a program that a test runs, or says what it is instead', () => {
  const blocks = allFenced();
  expect(blocks.length).toBeGreaterThan(60);
  const unclear = blocks.filter(
    ({ language, mark }) => !isProgram(language, mark) && mark !== 'read' && (!(language in notRun) || mark !== ''),
  );
  expect(unclear.map(({ page, line }) => `${page}:${line}`)).toEqual([]);
  expect(blocks.filter(({ mark }) => mark !== '' && !marks.includes(mark))).toEqual([]);
  // No block is cut off by an unclosed fence.
  for (const [page, its] of Map.groupBy(blocks, ({ page }) => page)) {
    const fences = readFileSync(join(repository, page), 'utf8').match(/^ *```/gm) ?? [];
    expect(fences.length, page).toBe(2 * its.length);
  }
  for (const { page, line, language, text } of blocks) {
    const place = `${page}:${line}`;
    if (language === 'json') expect(() => JSON.parse(text) as unknown, place).not.toThrow();
    if (language === 'yaml') expect(() => Bun.YAML.parse(text), place).not.toThrow();
  }
});

/** Error details that no caller of the API sees: they mark errors between parts of the platform. */
const betweenParts = [
  'checkpoint_failed',
  'criu_killed',
  'sandbox_ended',
  'part_lost',
  'place_unusable',
  'not_installed',
];

test('the reference names every status and every error_code, and none that there is not', () => {
  const page = readFileSync(join(repository, 'docs/platform-api.md'), 'utf8');
  const section = page.slice(page.indexOf('## Errors'), page.indexOf('## Limits'));
  const rows = [...section.matchAll(/^\| ([^|]+) \|/gm)].map(([, first = '']) => first);
  const statuses = rows.flatMap(first => first.match(/\b\d{3}\b/g) ?? []).map(Number);
  for (const status of Object.values(statusOf)) expect(statuses).toContain(status);
  const named = rows.flatMap(first => [...first.matchAll(/`([a-z]+_[a-z_]+)`/g)].map(([, code = '']) => code));
  const source = sourceFiles(['src'])
    .filter(({ path }) => !isTest(path) && !/^src\/(cli|agent|bin)\//.test(path))
    .map(({ text }) => text)
    .join('\n');
  const literal = [...source.matchAll(/\bdetail: (?:[\w.]+ \?\? )?'([a-z]+_[a-z_]+)'/g)].map(([, code = '']) => code);
  const constants = [...source.matchAll(/\bdetail: (?:[^,'}]*\? )?(\w+)(?: : \w+)?[,} ]/g)].flatMap(([, name = '']) =>
    [...source.matchAll(new RegExp(`\\bconst ${name} = '([a-z]+_[a-z_]+)'`, 'g'))].map(([, code = '']) => code),
  );
  const used = [...new Set([...literal, ...constants])].filter(code => !betweenParts.includes(code));
  expect(used.length).toBeGreaterThan(12);
  expect(used.filter(code => !named.includes(code))).toEqual([]);
  expect(named.filter(code => code !== 'error_code' && !source.includes(`'${code}'`))).toEqual([]);
});

/** Messages of the kernel in a sandbox. */
const ofTheSystem = ['No space left on device', 'Read-only file system'];

test('the messages that troubleshooting goes by are said somewhere', () => {
  const page = readFileSync(join(repository, 'docs/guides/troubleshooting.md'), 'utf8');
  const source = sourceFiles(['src'])
    .map(({ text }) => text)
    .join('\n');
  // Rows as `| message | remedy |`: the quoted texts that begin like a sentence of ours, without their placeholders.
  const quoted = [...page.matchAll(/^\| (?:\d{3} )?`([^`]+)`/gm)].map(([, message = '']) => message);
  const ours = quoted.filter(
    message => /^(?:[A-Z]|…)/.test(message) && message.includes(' ') && !ofTheSystem.includes(message),
  );
  const parts = ours.flatMap(message => message.split('…').map(part => part.trim())).filter(part => part.length > 9);
  expect(parts.length).toBeGreaterThan(10);
  expect(parts.filter(part => !source.includes(part))).toEqual([]);
});
