import { ArrowLeft, Download, Save } from 'lucide-react';
import { useEffect, useMemo, useState } from 'react';
import { useAct } from '../code/calls.tsx';
import { formatBytes } from '../format.ts';
import { CopyBeside } from '../parts/bits.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { useToast } from '../parts/toasts.tsx';
import { hexLines } from './content.ts';
import type { Content } from './content.ts';
import { downloadFile } from './download.ts';
import { useDraft } from './draft.ts';
import type { Conflict } from './draft.ts';
import { CodeArea } from './editor/code-area.tsx';
import { Leaving } from './leaving.tsx';
import { withPlainEnds } from './line-ends.ts';
import { nameOf } from './paths.ts';
import type { FileStore } from './store.ts';
import { tableOf } from './table-of.ts';
import { TextTable } from './text-table.tsx';

type FileViewProps = {
  store: FileStore;
  path: string;
  /** The line to show, from 1. */
  line: number | undefined;
  mayChange: boolean;
  onClose: () => void;
};

/** A file: text to edit, an image to see, anything else to download. None of it becomes a document of this origin. */
export function FileView({ store, path, line, mayChange, onClose }: FileViewProps) {
  const toast = useToast();
  const { file, draft, toSave, type, save, isSaving, conflict, setConflict } = useDraft(store, path);
  const act = useAct();
  const start = () =>
    act(
      () => store.codeOf({ what: 'write', path, text: toSave() }),
      () => void save(),
    );
  const download = () =>
    void downloadFile(store, path).catch((error: Error) => toast({ kind: 'danger', text: error.message }));
  return (
    <div
      className="stack"
      style={{ gap: 8 }}
      onKeyDown={event => {
        if (!(event.ctrlKey || event.metaKey) || event.key !== 's' || draft === null) return;
        event.preventDefault();
        start();
      }}
    >
      <div className="row">
        <button type="button" className="button bare" onClick={onClose}>
          <ArrowLeft size={14} /> Back
        </button>
        <span className="row copyable" style={{ flex: '1 1 220px', minWidth: 0 }}>
          <span className="mono cut" title={path}>
            {path}
          </span>
          <CopyBeside text={store.codeFor(path)} />
        </span>
        {draft !== null && <span className="small muted">not saved</span>}
        <button type="button" className="button" onClick={download}>
          <Download size={14} /> Download
        </button>
        {mayChange && (
          <button type="button" className="button primary" disabled={draft === null || isSaving} onClick={start}>
            <Save size={14} /> Save
          </button>
        )}
      </div>
      <Loaded of={file}>
        {content => (
          <Shown content={content} path={path} line={line} draft={draft} onDraft={mayChange ? type : undefined} />
        )}
      </Loaded>
      {conflict && (
        <ConflictQuestion
          of={conflict}
          path={path}
          onClose={() => setConflict(null)}
          onConfirm={() => {
            setConflict(null);
            void save(true);
          }}
        />
      )}
      <Leaving path={path} isUnsaved={draft !== null} />
    </div>
  );
}

const conflicts: Record<Conflict, { title: string; action: string; about: (name: string) => string }> = {
  changed: {
    title: 'It has changed there since you opened it',
    action: 'Overwrite',
    about: name => `What is in ${name} now goes, and your text takes its place.`,
  },
  gone: {
    title: 'It is not there any more',
    action: 'Make it again',
    about: name => `${name} was removed or renamed since you opened it. Your text can make it again.`,
  },
};

type ConflictProps = { of: Conflict; path: string; onClose: () => void; onConfirm: () => void };

function ConflictQuestion({ of, path, onClose, onConfirm }: ConflictProps) {
  const { title, action, about } = conflicts[of];
  return (
    <Confirm title={title} action={action} onClose={onClose} onConfirm={onConfirm}>
      <p className="muted">{about(nameOf(path))}</p>
    </Confirm>
  );
}

type ShownProps = {
  content: Content;
  path: string;
  line: number | undefined;
  draft: string | null;
  onDraft: ((text: string) => void) | undefined;
};

function Shown({ content, path, line, draft, onDraft }: ShownProps) {
  // A draft stays, whatever happened to the file.
  if (draft !== null || content.kind === 'text') {
    const text = draft ?? (content.kind === 'text' ? withPlainEnds(content.text) : '');
    return <ShownText text={text} path={path} line={line} isDraft={draft !== null} onDraft={onDraft} />;
  }
  if (content.kind === 'image') return <ShownImage image={content.image} name={nameOf(path)} />;
  return (
    <>
      <p className="note">{formatBytes(content.bytes)} that are no text of a size to edit here. Download them.</p>
      {content.head && content.head.length > 0 && (
        <div className="code">
          <pre tabIndex={0} aria-label={`First bytes of ${path}`}>
            {hexLines(content.head).join('\n')}
          </pre>
        </div>
      )}
    </>
  );
}

/** An image. Its address is valid as long as it is shown, while the data is cached for longer. */
function ShownImage({ image, name }: { image: Blob; name: string }) {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    const made = URL.createObjectURL(image);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [image]);
  return url !== null && <img className="preview" src={url} alt={name} />;
}

type ShownTextProps = Pick<ShownProps, 'path' | 'line' | 'onDraft'> & { text: string; isDraft: boolean };

/** A text to edit; separated values are first shown as a table. */
function ShownText({ text, path, line, isDraft, onDraft }: ShownTextProps) {
  const [asText, setAsText] = useState(line !== undefined);
  const table = useMemo(() => (isDraft ? null : tableOf(path, text)), [isDraft, path, text]);
  const isTable = table !== null && table.rows.length > 0;
  return (
    <>
      {isTable && (
        <div className="segments" role="group" aria-label="Shown as" style={{ justifySelf: 'start' }}>
          <button type="button" aria-pressed={!asText} onClick={() => setAsText(false)}>
            Table
          </button>
          <button type="button" aria-pressed={asText} onClick={() => setAsText(true)}>
            Text
          </button>
        </div>
      )}
      {isTable && !asText ? (
        <TextTable path={path} of={table} />
      ) : (
        <CodeArea
          path={path}
          text={text}
          line={line}
          readOnly={!onDraft}
          onChange={next => {
            setAsText(true);
            onDraft?.(next);
          }}
        />
      )}
    </>
  );
}
