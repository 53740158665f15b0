import { memo, useMemo, useState } from 'react';

/** Longer messages are shown unchanged, characters. */
const foldedMax = 65_536;

/** The message of an entry; a JSON message unfolds into lines. */
export const LogMessage = memo(function LogMessage({ level, text }: { level: string; text: string }) {
  const json = useMemo(() => jsonOf(text), [text]);
  const [isOpen, setOpen] = useState(false);
  if (json === null) return <span className={`text ${level}`}>{text}</span>;
  return (
    <details className={`text ${level}`} onToggle={event => setOpen(event.currentTarget.open)}>
      <summary>{text}</summary>
      {isOpen && <pre>{JSON.stringify(json, null, 2)}</pre>}
    </details>
  );
});

/** The object or list that a text encodes; null for any other text. */
function jsonOf(text: string): object | null {
  if (text.length > foldedMax || !/^\s*[[{]/.test(text)) return null;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    // It only looked like JSON, and is shown as plain text.
    return null;
  }
}
