import type { Answer, AnswerBody } from './answer.ts';

/** A self-contained page that puts the answer into plain words, for light and dark screens. */
export function errorPage(answer: Answer, body: AnswerBody): string {
  const { title, text, hint } = wordsFor(answer, body);
  const facts: Fact[] = [
    ['status', answer.status],
    ...Object.entries(body).filter(([name]) => !saidElsewhere.has(name)),
  ];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${escaped(title)}</title>
<style>
:root {
  color-scheme: light dark; --ink: #16202b; --soft: #52606d; --line: #d6dde4;
  --back: #f6f8fa; --card: #fff; --mark: #0b7285;
}
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9aa7b4; --line: #2b3642; --back: #0e141b; --card: #161e27; --mark: #4cc9e0; }
}
body {
  margin: 0; min-height: 100vh; display: grid; place-items: center;
  background: var(--back); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif;
}
main {
  box-sizing: border-box; width: min(34rem, 92vw); padding: 2rem; background: var(--card);
  border: 1px solid var(--line); border-top: 4px solid var(--mark); border-radius: .6rem;
}
h1 { margin: 0 0 .6rem; font-size: 1.4rem; line-height: 1.25; }
p { margin: 0 0 1rem; }
dl {
  display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: 0; padding-top: 1rem;
  border-top: 1px solid var(--line); color: var(--soft); font-size: .9rem;
}
dt { font-weight: 600; } dd { margin: 0; overflow-wrap: anywhere; font-family: ui-monospace, monospace; }
</style>
</head>
<body>
<main>
<h1>${escaped(title)}</h1>
<p>${escaped(text ?? `${body.message}.`)}</p>
<p>${escaped(hint)}</p>
<dl>${facts.map(factOf).join('')}</dl>
</main>
</body>
</html>
`;
}

type Fact = [name: string, value: string | number];

/** Members of the body that the page shows elsewhere. */
const saidElsewhere = new Set(['message', 'code']);

function factOf([name, value]: Fact): string {
  return `<dt>${escaped(label(name))}</dt><dd>${escaped(String(value))}</dd>`;
}

type Words = { readonly title: string; readonly hint: string; /** Replaces the message. */ readonly text?: string };

function wordsFor({ status, about }: Answer, body: AnswerBody): Words {
  if (about === 'paused') {
    return {
      title: 'This sandbox is paused',
      text: 'What it was doing is kept.',
      hint: 'It does not wake up by itself when it is visited. Resume it, then reload.',
    };
  }
  if (about === 'full') {
    return {
      title: 'There is no room for this sandbox now',
      text: 'It is paused, and what it was doing is kept.',
      hint: 'Others must end or pause before it can go on. Reload later.',
    };
  }
  switch (status) {
    case 502:
      return 'port' in body
        ? {
            title: `Nothing answers on port ${body['port']}`,
            hint: 'Start the server inside the sandbox, or check that it listens on this port; then reload.',
          }
        : {
            title: 'This sandbox is not running',
            hint: 'It may have reached its end of life or been stopped. Start another one, or check the address.',
          };
    case 403:
      return {
        title: 'Access to this sandbox is restricted',
        hint: 'Its owner can give you the token that requests must carry.',
      };
    case 404:
      return { title: 'Not found', hint: 'This path is not served here.' };
    case 409:
      return { title: 'The sandbox is changing its state', hint: 'Wait a moment and reload.' };
    case 429:
      return { title: 'Too much at once', hint: 'Wait for other requests to end, then reload.' };
    case 503:
    case 504:
      return { title: 'The sandbox could not be reached', hint: 'Wait a moment and reload.' };
    default:
      return {
        title: status >= 500 ? 'Something went wrong here' : 'This request could not be read',
        hint: 'Check the address.',
      };
  }
}

function label(name: string): string {
  switch (name) {
    case 'sandboxId':
      return 'Sandbox';
    case 'connectionLimit':
      return 'Connection limit';
    default:
      return name.charAt(0).toUpperCase() + name.slice(1);
  }
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, char => `&#${char.charCodeAt(0)};`);
}
