import type { Heredoc } from '../../../protocol/build.ts';

/** An instruction's own line, continuations joined and comments left out, and the texts that follow it inline. */
export type LogicalLine = { text: string; heredocs: Heredoc[]; /** The lines behind the first one, as written. */ rest: string };

/** Reads the lines of one instruction (Dockerfile reference, "Escape character" and "Here-Documents"). */
export function readLogicalLine(lines: string[], escape: string, mayHaveHeredocs: boolean): LogicalLine {
  let text = '';
  let used = 0;
  for (const line of lines) {
    used++;
    const commentOrEmpty = text !== '' && /^\s*(#.*)?$/.test(line);
    if (commentOrEmpty) continue;
    const trimmed = line.replace(/\s+$/, '');
    if (!trimmed.endsWith(escape)) {
      text += line;
      break;
    }
    text += trimmed.slice(0, -1);
  }
  const rest = lines.slice(used);
  return { text, heredocs: mayHaveHeredocs ? readHeredocs(text, rest) : [], rest: rest.join('\n') };
}

/** `<<NAME`, `<<-NAME` (leading tabs are left out), `<<"NAME"` (nothing is expanded). */
export const heredocPattern = /<<(-?)(["']?)([A-Za-z_][\w.]*)\2/g;

function readHeredocs(text: string, lines: string[]): Heredoc[] {
  let at = 0;
  return [...text.matchAll(heredocPattern)].map(([, dash, quote, name = '']) => {
    const content: string[] = [];
    for (; at < lines.length; at++) {
      const line = dash ? (lines[at] ?? '').replace(/^\t+/, '') : (lines[at] ?? '');
      if (line === name) break;
      content.push(line);
    }
    at++;
    return { name, content: content.map(line => `${line}\n`).join(''), expand: quote === '' };
  });
}
