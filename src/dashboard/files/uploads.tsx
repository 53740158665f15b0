import { X } from 'lucide-react';
import { useRef, useState } from 'react';
import { formatBytes, formatCount } from '../format.ts';
import { Meter } from '../parts/bits.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { useToast } from '../parts/toasts.tsx';
import type { Upload } from './dropped.ts';
import { existingOf } from './existing.ts';
import { joinPath } from './paths.ts';
import type { FileStore } from './store.ts';

type Progress = { files: number; filesDone: number; bytes: number; bytesDone: number; name: string };

/** Files to put into a folder, which may not be the one that is shown by now, and which of them are there already. */
type Doubtful = { into: string; uploads: readonly Upload[]; existing: string[] };

/**
 * Puts files into a folder one after the other, after a question where some are there already, and says how far that
 * is. `onDone` also comes after a failure.
 */
export function useUploads(store: FileStore, folder: string, onDone: () => Promise<unknown>) {
  const toast = useToast();
  const [progress, setProgress] = useState<Progress | null>(null);
  const stop = useRef<AbortController>(undefined);
  const [doubtful, setDoubtful] = useState<Doubtful | null>(null);
  const put = async (into: string, uploads: readonly Upload[]) => {
    if (uploads.length === 0) return;
    if (stop.current) return toast({ kind: 'danger', text: 'Another upload is under way: wait for it, or stop it' });
    const { signal } = (stop.current = new AbortController());
    const bytes = uploads.reduce((sum, { file }) => sum + file.size, 0);
    let [filesDone, bytesDone] = [0, 0];
    try {
      for (const { file, path } of uploads) {
        setProgress({ files: uploads.length, filesDone, bytes, bytesDone, name: path });
        await store.write(joinPath(into, path), file, signal);
        filesDone++;
        bytesDone += file.size;
      }
      const what = uploads.length === 1 ? uploads[0]?.path : `${formatCount(uploads.length)} files`;
      toast({ kind: 'ok', text: `${what} uploaded` });
    } catch (error) {
      const why = signal.aborted ? 'Stopped' : (error as Error).message;
      toast({ kind: 'danger', text: `${why}: ${filesDone} of ${uploads.length} files are there` });
    } finally {
      stop.current = undefined;
      setProgress(null);
      await onDone();
    }
  };
  const upload = async (uploads: readonly Upload[]) => {
    try {
      const paths = uploads.map(({ path }) => path);
      const existing = await existingOf(store, folder, paths);
      if (existing.length === 0) await put(folder, uploads);
      else setDoubtful({ into: folder, uploads, existing });
    } catch (error) {
      toast({ kind: 'danger', text: (error as Error).message });
    }
  };
  const question = doubtful && (
    <ReplaceQuestion
      of={doubtful}
      onClose={() => setDoubtful(null)}
      onDone={uploads => void put(doubtful.into, uploads)}
    />
  );
  return { progress, upload, question, cancel: () => stop.current?.abort() };
}

/** How far an upload is, and the way to stop it. */
export function UploadProgress({ of, onCancel }: { of: Progress; onCancel: () => void }) {
  const { files, filesDone, bytes, bytesDone, name } = of;
  const ofBytes = `${formatBytes(bytesDone)} of ${formatBytes(bytes)}`;
  const text = `${formatCount(filesDone)} of ${formatCount(files)} files, ${ofBytes}`;
  return (
    <div className="note" role="status">
      <div className="stack grow" style={{ gap: 6 }}>
        <span>
          Uploading <span className="mono">{name}</span>
        </span>
        <Meter plain wide share={bytes === 0 ? filesDone / files : bytesDone / bytes} label={text} />
        <span className="small muted num">{text}</span>
      </div>
      <button type="button" className="button tiny" onClick={onCancel}>
        <X size={14} /> Stop
      </button>
    </div>
  );
}

/** Names that a question tells; of more it says how many. */
const namesMax = 8;

type ReplaceProps = { of: Doubtful; onClose: () => void; onDone: (uploads: readonly Upload[]) => void };

/** Asks what becomes of files that are there already. */
function ReplaceQuestion({ of: { uploads, existing }, onClose, onDone }: ReplaceProps) {
  const [only] = existing;
  const there = new Set(existing);
  const others = uploads.filter(({ path }) => !there.has(path));
  const answer = (chosen: readonly Upload[]) => {
    onClose();
    onDone(chosen);
  };
  return (
    <Dialog
      title={existing.length === 1 ? `Replace ${only}?` : `Replace ${formatCount(existing.length)} files?`}
      onClose={onClose}
      onSubmit={() => answer(uploads)}
    >
      <p className="muted">
        {existing.length === 1
          ? 'It is there already, and what is in it'
          : 'They are there already, and what is in them'}{' '}
        now would go.
      </p>
      {existing.length > 1 && (
        <ul className="mono small">
          {existing.slice(0, namesMax).map(name => (
            <li key={name}>{name}</li>
          ))}
          {existing.length > namesMax && <li>and {formatCount(existing.length - namesMax)} more</li>}
        </ul>
      )}
      <footer>
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
        {others.length > 0 && (
          <button type="button" className="button" onClick={() => answer(others)}>
            Upload the others alone
          </button>
        )}
        <button className="button danger primary">Replace</button>
      </footer>
    </Dialog>
  );
}
