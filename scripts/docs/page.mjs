import { posix } from 'node:path';

/** Text escaped for HTML. */
export const escaped = text =>
  String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** The relative path from one place of the site to another. */
export const wayTo = (from, to) => posix.relative(posix.dirname(from), to) || posix.basename(to);

/** A whole page: `body` is HTML, `sections` the navigation, `place` the page's own place. */
export function pageOf({ place, title, body, sections }) {
  const link = ([to, text]) =>
    `<li><a href="${wayTo(place, to)}"${to === place ? ' aria-current="page"' : ''}>${escaped(text)}</a></li>`;
  const lists = sections.map(
    ([name, pages]) => `<h2>${escaped(name)}</h2>\n<ul>\n${pages.map(link).join('\n')}\n</ul>`,
  );
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${escaped(title)} · Atoll</title>
<link rel="stylesheet" href="${wayTo(place, 'style.css')}">
<body>
<a class="skip" href="#content">To the content</a>
<nav aria-label="Documentation">
<p><a href="${wayTo(place, 'index.html')}">Atoll</a></p>
${lists.join('\n')}
</nav>
<main id="content">
${body}
</main>
</body>
</html>
`;
}
