import { Check, Copy as CopyIcon } from 'lucide-react';
import { useState } from 'react';

/** Code with a button that copies it. */
export function Code({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div className="code">
      <pre tabIndex={0}>{text}</pre>
      <button type="button" className="button bare tiny" aria-label="Copy the code" onClick={() => void copy()}>
        {copied ? <Check size={14} /> : <CopyIcon size={14} />}
      </button>
    </div>
  );
}

/** The same code in several languages, one at a time. */
export function CodeTabs({ texts }: { texts: Record<string, string> }) {
  const [chosen, setChosen] = useState(Object.keys(texts)[0] ?? '');
  return (
    <div className="stack" style={{ gap: 8 }}>
      <div className="segments" role="group" aria-label="Language" style={{ justifySelf: 'start' }}>
        {Object.keys(texts).map(name => (
          <button key={name} type="button" aria-pressed={name === chosen} onClick={() => setChosen(name)}>
            {name}
          </button>
        ))}
      </div>
      <Code text={texts[chosen] ?? ''} />
    </div>
  );
}
