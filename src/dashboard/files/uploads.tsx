import { X } from 'lucide-react';
import { useRef, useState } from 'react';
import { formatBytes, formatCount } from '../format.ts';
import { Meter } from '../parts/bits.tsx';
import { useToast } from '../parts/toasts.tsx';
import type { Upload } from './dropped.ts';
import { joinPath } from './paths.ts';
import type { FileStore } from './store.ts';

type Progress = { files: number; filesDone: number; bytes: number; bytesDone: number; name: string };

/** Puts files into a folder one after the other, and says how far that is. `onDone` also comes after a failure. */
export function useUploads(store: FileStore, folder: string, onDone: () => Promise<unknown>) {
  const toast = useToast();
  const [progress, setProgress] = useState<Progress | null>(null);
  const stop = useRef<AbortController>(undefined);
  const upload = async (uploads: readonly Upload[]) => {
    if (uploads.length === 0 || stop.current) return;
    const { signal } = (stop.current = new AbortController());
    const bytes = uploads.reduce((sum, { file }) => sum + file.size, 0);
    let [filesDone, bytesDone] = [0, 0];
    try {
      for (const { file, path } of uploads) {
        setProgress({ files: uploads.length, filesDone, bytes, bytesDone, name: path });
        await store.write(joinPath(folder, path), file, signal);
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
  return { progress, upload, cancel: () => stop.current?.abort() };
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
