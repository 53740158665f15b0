// Builds the documentation as a site: `bun scripts/docs/build.mjs FOLDER [REPOSITORY]`. It runs on the pinned runtime,
// whose own Markdown renderer makes the pages, so that the site needs no package. A dead link is an error.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { apiPages } from './api-pages.mjs';
import { contents, placeOf, unlisted } from './contents.mjs';
import { pageOf, wayTo } from './page.mjs';

const [, , folder, repository = join(dirname(fileURLToPath(import.meta.url)), '../..')] = process.argv;
const problems = buildSite(resolve(repository), resolve(folder));
if (problems.length > 0) {
  process.stderr.write(`${problems.join('\n')}\n`);
  process.exit(1);
}

function buildSite(root, output) {
  const pages = pagesOf(root);
  const problems = notListed(root, pages);
  const sections = sectionsOf(pages);
  const anchors = new Map();
  const links = [];
  const files = new Map([['style.css', readFileSync(join(root, 'scripts/docs/style.css'))]]);
  for (const { source, title, text } of pages) {
    const place = placeOf(source);
    const rendered = render(text, source);
    anchors.set(place, rendered.anchors);
    links.push(...rendered.links.map(link => ({ ...link, source })));
    files.set(place, pageOf({ place, title, body: rendered.html, sections }));
  }
  for (const { source, href, place, fragment } of links) {
    const path = place && join(root, 'docs', place);
    if (place && !anchors.has(place) && !place.endsWith('.html') && existsSync(path))
      files.set(place, readFileSync(path));
    if (!place || !files.has(place)) problems.push(`${source}: ${href} leads nowhere`);
    else if (fragment && !anchors.get(place)?.has(fragment)) problems.push(`${source}: ${href}: no such heading there`);
  }
  for (const [place, content] of problems.length > 0 ? [] : files) {
    mkdirSync(dirname(join(output, place)), { recursive: true });
    writeFileSync(join(output, place), content);
  }
  return problems;
}

function pagesOf(root) {
  const written = [...contents.flatMap(([, pages]) => pages), ...unlisted];
  return [
    ...written.map(([source, title]) => ({ source, title, text: readFileSync(join(root, source), 'utf8') })),
    ...apiPages(JSON.parse(readFileSync(join(root, 'docs/openapi.json'), 'utf8'))),
  ];
}

function notListed(root, pages) {
  const known = new Set(pages.map(({ source }) => source));
  return readdirSync(join(root, 'docs'), { recursive: true })
    .map(name => `docs/${name}`)
    .filter(source => source.endsWith('.md') && !known.has(source))
    .map(source => `${source} is in no list of scripts/docs/contents.mjs`);
}

function sectionsOf(pages) {
  const listed = contents.map(([name, entries]) => [name, entries.map(([source, title]) => [placeOf(source), title])]);
  const operations = pages.find(({ source }) => source === 'docs/api/index.md');
  listed.find(([name]) => name === 'Reference')[1].unshift([placeOf(operations.source), operations.title]);
  return listed;
}

/** On the site, the API's document is a set of pages, which link to the file itself. */
function targetOf(path, source) {
  const isForPeople = path === 'docs/openapi.json' && !source.startsWith('docs/api/');
  return placeOf(isForPeople ? 'docs/api/index.md' : path);
}

/** The HTML of a page, its headings, and the targets of its links. */
function render(text, source) {
  const anchors = new Set(['content']);
  const links = [];
  const place = placeOf(source);
  const lead = (element, name) => {
    const href = element.getAttribute(name);
    if (href === null || /^[a-z]+:/.test(href)) return;
    const [path, fragment] = href.split('#');
    const target = path === '' ? place : targetOf(posix.join(posix.dirname(source), path), source);
    links.push({ href, place: target, fragment });
    if (path !== '' && target) element.setAttribute(name, wayTo(place, target) + (fragment ? `#${fragment}` : ''));
  };
  const html = new HTMLRewriter()
    .on('[id]', { element: element => void anchors.add(element.getAttribute('id')) })
    .on('a[href]', { element: element => lead(element, 'href') })
    .on('img[src]', { element: element => lead(element, 'src') })
    .on('table', {
      element(element) {
        element.before('<div class="table">', { html: true });
        element.after('</div>', { html: true });
      },
    })
    .transform(Bun.markdown.html(text, { headings: { ids: true }, noHtmlBlocks: true, noHtmlSpans: true }));
  return { html, anchors, links };
}
