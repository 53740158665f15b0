import { useEffect, useLayoutEffect, useRef } from 'react';
import { tokensOf } from './tokens.ts';
import type { TokenKind } from './tokens.ts';

const kinds: readonly TokenKind[] = ['comment', 'string', 'number', 'keyword'];

type CodeAreaProps = {
  path: string;
  text: string;
  /** The line to start at, from 1. */
  line?: number | undefined;
  readOnly: boolean;
  onChange: (text: string) => void;
};

/**
 * A text field with coloured syntax: the browser paints the colours on a copy below the field, without an element for
 * each part.
 */
export function CodeArea({ path, text, line, readOnly, onChange }: CodeAreaProps) {
  const below = useRef<HTMLPreElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    if (below.current) paint(below.current, path, text);
  }, [path, text]);
  useEffect(() => () => kinds.forEach(kind => CSS.highlights?.delete(`code-${kind}`)), []);
  useEffect(() => {
    if (line !== undefined && field.current) goToLine(field.current, line);
  }, [line]);
  return (
    <div className="code-area">
      {/* The end of a last line that is empty is a line too. */}
      <pre ref={below} aria-hidden>
        {`${text}\n`}
      </pre>
      <textarea
        ref={field}
        aria-label={`Text of ${path}`}
        spellCheck={false}
        autoCapitalize="off"
        wrap="off"
        readOnly={readOnly}
        value={text}
        onChange={event => onChange(event.target.value)}
      />
    </div>
  );
}

/** Gives the parts of a text their colours. A browser that lacks this shows the text in one colour. */
function paint(below: HTMLElement, path: string, text: string): void {
  const node = below.firstChild;
  if (!node || CSS.highlights === undefined) return;
  const tokens = tokensOf(path, text);
  for (const kind of kinds) {
    const ranges = tokens
      .filter(token => token.kind === kind)
      .map(
        ({ from, to }) =>
          new StaticRange({ startContainer: node, startOffset: from, endContainer: node, endOffset: to }),
      );
    CSS.highlights.set(`code-${kind}`, new Highlight(...ranges));
  }
}

/** Selects a line and scrolls it into view. */
function goToLine(field: HTMLTextAreaElement, line: number): void {
  const lines = field.value.split('\n');
  const from = lines.slice(0, line - 1).reduce((sum, { length }) => sum + length + 1, 0);
  field.focus({ preventScroll: true });
  field.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
  const frame = field.parentElement;
  const linePx = Number.parseFloat(getComputedStyle(field).lineHeight);
  if (frame) frame.scrollTop = Math.max(0, (line - 1) * linePx - frame.clientHeight / 3);
}
