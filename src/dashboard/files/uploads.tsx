import { useQueryClient } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { createContext, use, useEffect, useRef, useState } from 'react';
import type { ReactNode } from 'react';
import { useAct } from '../code/calls.tsx';
import { formatBytes, formatCount } from '../format.ts';
import { Meter } from '../parts/bits.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { useToast } from '../parts/toasts.tsx';
import type { Upload } from './dropped.ts';
import { existingOf } from './existing.ts';
import { joinPath } from './paths.ts';
import type { FileStore } from './store.ts';

/** Progress of an upload; `of` is the key of its store, `into` its folder. */
type Progress = {
  of: string;
  into: string;
  files: number;
  filesDone: number;
  bytes: number;
  bytesDone: number;
  name: string;
  stop: AbortController;
};

/** Files to put into a folder, which may no longer be the one shown, and which of them exist there already. */
type Doubtful = { store: FileStore; into: string; uploads: readonly Upload[]; existing: string[] };

type Uploading = {
  /** Puts files into a folder one after another; asks first if some exist already. */
  upload: (store: FileStore, folder: string, uploads: readonly Upload[]) => void;
  /** Whether an upload into a store is in progress, by the store's key. */
  isUnderWay: (key: string) => boolean;
};

const UploadsContext = createContext<Uploading>({ upload: () => {}, isUnderWay: () => false });

/** Uploads, which go on whichever page is shown. */
export const useUploads = (): Uploading => use(UploadsContext);

/** Runs the uploads requested through `useUploads` by everything below, and shows their progress above it. */
export function Uploads({ children }: { children: ReactNode }) {
  const toast = useToast();
  const client = useQueryClient();
  const act = useAct();
  const [all, setAll] = useState<readonly Progress[]>([]);
  const [doubtful, setDoubtful] = useState<Doubtful | null>(null);
  // By the store's key: one upload at a time.
  const stops = useRef(new Map<string, AbortController>());
  useEffect(() => {
    const { current } = stops;
    // Nobody is signed in any more.
    return () => current.forEach(stop => stop.abort());
  }, []);
  const put = async (store: FileStore, into: string, uploads: readonly Upload[]) => {
    const { key } = store;
    if (uploads.length === 0) return;
    if (stops.current.has(key))
      return toast({ kind: 'danger', text: 'Another upload is under way: wait for it, or stop it' });
    const stop = new AbortController();
    stops.current.set(key, stop);
    const tell = (now: Progress | null) =>
      setAll(before => [...before.filter(({ of }) => of !== key), ...(now ? [now] : [])]);
    toast(await putAll(store, into, uploads, { stop, tell }));
    stops.current.delete(key);
    tell(null);
    await client.invalidateQueries({ queryKey: ['files', key] });
  };
  const begin = async (store: FileStore, folder: string, uploads: readonly Upload[], paths: readonly string[]) => {
    try {
      const existing = await existingOf(store, folder, paths);
      if (existing.length === 0) await put(store, folder, uploads);
      else setDoubtful({ store, into: folder, uploads, existing });
    } catch (error) {
      toast({ kind: 'danger', text: (error as Error).message });
    }
  };
  const upload: Uploading['upload'] = (store, folder, uploads) => {
    const files = uploads.map(({ path }) => path);
    act(
      () => store.codeOf({ what: 'upload', folder, files }),
      () => void begin(store, folder, uploads, files),
    );
  };
  return (
    <UploadsContext value={{ upload, isUnderWay: key => all.some(({ of }) => of === key) }}>
      {all.map(progress => (
        <UploadProgress key={progress.of} of={progress} />
      ))}
      {doubtful && (
        <ReplaceQuestion
          of={doubtful}
          onClose={() => setDoubtful(null)}
          onDone={uploads => void put(doubtful.store, doubtful.into, uploads)}
        />
      )}
      {children}
    </UploadsContext>
  );
}

type Way = { stop: AbortController; tell: (now: Progress) => void };

/** Puts files into a folder, one after another; answers the text to report. */
async function putAll(
  store: FileStore,
  into: string,
  uploads: readonly Upload[],
  { stop, tell }: Way,
): Promise<{ kind: 'ok' | 'danger'; text: string }> {
  const bytes = uploads.reduce((sum, { file }) => sum + file.size, 0);
  let [filesDone, bytesDone] = [0, 0];
  try {
    for (const { file, path } of uploads) {
      tell({ of: store.key, into, files: uploads.length, filesDone, bytes, bytesDone, name: path, stop });
      await store.write(joinPath(into, path), file, stop.signal);
      filesDone++;
      bytesDone += file.size;
    }
    const what = uploads.length === 1 ? uploads[0]?.path : `${formatCount(uploads.length)} files`;
    return { kind: 'ok', text: `${what} uploaded` };
  } catch (error) {
    const why = stop.signal.aborted ? 'Stopped' : (error as Error).message;
    return { kind: 'danger', text: `${why}: ${filesDone} of ${uploads.length} files are there` };
  }
}

/** The progress of an upload, and a way to stop it. */
function UploadProgress({ of: { into, files, filesDone, bytes, bytesDone, name, stop } }: { of: Progress }) {
  const ofBytes = `${formatBytes(bytesDone)} of ${formatBytes(bytes)}`;
  const text = `${formatCount(filesDone)} of ${formatCount(files)} files, ${ofBytes}`;
  return (
    <div className="note uploading" role="status">
      <div className="stack grow" style={{ gap: 6, minWidth: 0 }}>
        <span className="cut" title={joinPath(into, name)}>
          Uploading <span className="mono">{joinPath(into, name)}</span>
        </span>
        <Meter plain wide share={bytes === 0 ? filesDone / files : bytesDone / bytes} label={text} />
        <span className="small muted num">{text}</span>
      </div>
      <button type="button" className="button tiny" onClick={() => stop.abort()}>
        <X size={14} /> Stop
      </button>
    </div>
  );
}

/** Names listed in a question; beyond that, it says how many more. */
const namesMax = 8;

type ReplaceProps = { of: Doubtful; onClose: () => void; onDone: (uploads: readonly Upload[]) => void };

/** Asks what to do with files that exist already. */
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
