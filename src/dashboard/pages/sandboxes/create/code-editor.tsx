import { useState } from 'react';
import { codeOf } from './code.ts';
import type { Wish } from './code.ts';
import { readCode } from './read-code.ts';

type CodeEditorProps = { wish: Wish; onRead: (wish: Wish) => void };

/** The code while the user edits it. */
type Draft = { language: string; text: string; of: Wish; problem: string | null };

/** The code that creates a sandbox, in three languages; edits in it are read back. */
export function CodeEditor({ wish, onRead }: CodeEditorProps) {
  const texts = codeOf(wish, location.origin);
  const [language, setLanguage] = useState('JavaScript');
  const [draft, setDraft] = useState<Draft | null>(null);
  const change = (text: string) => {
    try {
      const next = readCode(language, text);
      onRead(next);
      setDraft({ language, text, of: next, problem: null });
    } catch (error) {
      setDraft({ language, text, of: wish, problem: error instanceof Error ? error.message : String(error) });
    }
  };
  // Once the form changes, the form counts.
  const shown = draft?.language === language && draft.of === wish ? draft : null;
  const written = texts[language] ?? '';
  return (
    <div className="stack" style={{ gap: 8 }}>
      <div className="row">
        <div className="segments" role="group" aria-label="Language">
          {Object.keys(texts).map(name => (
            <button
              key={name}
              type="button"
              aria-pressed={name === language}
              onClick={() => {
                setLanguage(name);
                setDraft(null);
              }}
            >
              {name}
            </button>
          ))}
        </div>
        <span className="grow" />
        <button
          type="button"
          className="button"
          onClick={() => void navigator.clipboard.writeText(shown?.text ?? written)}
        >
          Copy
        </button>
      </div>
      <textarea
        className="code-editor"
        aria-label={`Code in ${language}`}
        aria-invalid={shown?.problem != null}
        spellCheck={false}
        value={shown?.text ?? written}
        onChange={event => change(event.target.value)}
        // What is not understood stays; all else is written anew, from the form.
        onBlur={() => shown?.problem === null && setDraft(null)}
      />
      <p className="small muted" role="status">
        {shown?.problem == null ? (
          'Change the form or the code: the other follows.'
        ) : (
          <span className="wrong">{shown.problem}. The form is as it was.</span>
        )}
      </p>
    </div>
  );
}
