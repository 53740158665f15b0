import { useQuery, useQueryClient } from '@tanstack/react-query';
import { FilePlus, FolderPlus } from 'lucide-react';
import { useEffect, useState } from 'react';
import type { ComponentProps, ReactNode } from 'react';
import { ApiFailure } from '../api/client.ts';
import { useConnections } from '../api/connections.ts';
import { useAct } from '../code/calls.tsx';
import type { FileChange } from '../code/sdk-code.ts';
import { gathered } from '../api/gathered.ts';
import { Asked } from '../parts/asked.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { useToast } from '../parts/toasts.tsx';
import { arrange } from './arrange.ts';
import { Crumbs } from './crumbs.tsx';
import { droppedFiles } from './dropped.ts';
import type { Upload } from './dropped.ts';
import { Entries } from './entries.tsx';
import { isThere } from './existing.ts';
import { FindField, foundAs, Found } from './find/found.tsx';
import { octalMode } from './mode.ts';
import { PathBar } from './path-bar.tsx';
import { joinPath, nameOf } from './paths.ts';
import { fileOrders } from './search.ts';
import type { FileOrder, FilesSearch } from './search.ts';
import type { Entry, FileStore } from './store.ts';
import { UploadButtons } from './upload-buttons.tsx';
import { useUploads } from './uploads.tsx';

const orderNames: Record<FileOrder, string> = { name: 'By name', size: 'Largest first', changed: 'Latest first' };

/** How long after a lost connection a folder is watched again, ms. */
const watchAgainMs = 2_000;
/** What the edge answers while the platform or the sandbox is not there. */
const lostStatuses: readonly number[] = [0, 502, 503];

/** A lost connection is made again; a folder that can't be watched is not tried again. */
function rethrowUnlessLost(error: unknown): void {
  if (!(error instanceof ApiFailure) || !lostStatuses.includes(error.status)) throw error;
}

/** A change within a folder. */
type FolderChange = Exclude<FileChange, { what: 'upload' }>;
/** Makes the change, or shows the code for it; `then` is called once that was tried. */
type Change = (wanted: FolderChange, then?: () => void) => void;

/** Makes a store carry out a change. */
function make(store: FileStore, wanted: FolderChange): Promise<unknown> {
  switch (wanted.what) {
    case 'folder':
      return store.makeFolder(wanted.path);
    case 'write':
      return store.write(wanted.path, new Blob([wanted.text]));
    case 'remove':
      return store.remove(wanted.path);
    case 'rename':
      return Promise.resolve(store.rename?.(wanted.path, wanted.to));
    case 'mode':
      return Promise.resolve(store.changeMode?.(wanted.path, wanted.mode));
  }
}

/** What is reported after success. */
const doneTexts: Record<FolderChange['what'], string> = {
  folder: 'Folder made',
  write: 'File made',
  remove: 'Deleted',
  rename: 'Renamed',
  mode: 'Changed',
};

/** The content of a folder, and how to change it; the outcome of a change is reported, and the folder read again. */
function useFolder(store: FileStore, path: string) {
  const client = useQueryClient();
  const toast = useToast();
  const connections = useConnections();
  const renew = () => client.invalidateQueries({ queryKey: ['files', store.key] });
  const folder = useQuery({ queryKey: ['files', store.key, path], queryFn: () => store.list(path) });
  const act = useAct();
  const carryOut = async (wanted: FolderChange, then?: () => void) => {
    await make(store, wanted).then(
      () => toast({ kind: 'ok', text: doneTexts[wanted.what] }),
      (error: Error) => toast({ kind: 'danger', text: error.message }),
    );
    await renew();
    then?.();
  };
  const change: Change = (wanted, then) =>
    act(
      () => store.codeOf(wanted),
      () => void carryOut(wanted, then),
    );
  useEffect(() => {
    const stop = new AbortController();
    // A folder that can't be watched stays as it was read.
    const onChange = gathered(async () => renew(), stop.signal);
    const watch = async () => {
      if (!store.watch) return;
      await connections.hold({ isShown: () => true }, stop.signal);
      while (!stop.signal.aborted) {
        await store.watch(path, () => onChange([path]), stop.signal).catch(rethrowUnlessLost);
        await new Promise(resolve => setTimeout(resolve, watchAgainMs));
        // Something may have changed while nobody watched.
        onChange([path]);
      }
    };
    void watch()
      .catch(() => undefined)
      // A folder that can't be watched holds no connection.
      .finally(() => stop.abort());
    return () => stop.abort();
    // Stores with the same key are the same.
  }, [store.key, path, connections]);
  return { folder, change };
}

type FolderViewProps = {
  store: FileStore;
  search: FilesSearch;
  onGo: (search: FilesSearch) => void;
  mayChange: boolean;
};

/** What the user is asked about. */
type Asking =
  | { what: 'folder' }
  | { what: 'file' }
  | { what: 'rename'; entry: Entry }
  | { what: 'replace'; entry: Entry; to: string }
  | { what: 'mode'; entry: Entry }
  | { what: 'remove'; entry: Entry };

/** A folder: its content, and everything that can be done in it. */
export function FolderView({ store, search, onGo, mayChange }: FolderViewProps) {
  const { path = store.home, order = 'name', hidden = true, find } = search;
  const [dragged, setDragged] = useState(false);
  const [asking, setAsking] = useState<Asking | null>(null);
  const { folder, change } = useFolder(store, path);
  const uploads = useUploads();
  const upload = (files: readonly Upload[]) => uploads.upload(store, path, files);
  return (
    <div
      className={dragged ? 'stack drop' : 'stack'}
      style={{ gap: 8 }}
      onDragOver={event => {
        if (!mayChange) return;
        event.preventDefault();
        setDragged(true);
      }}
      onDragLeave={() => setDragged(false)}
      onDrop={event => {
        event.preventDefault();
        setDragged(false);
        if (mayChange) void droppedFiles(event.dataTransfer.items).then(upload);
      }}
    >
      <div className="row">
        <Crumbs path={path} onOpen={path => onGo({ ...search, path })} />
        <span className="grow" />
        <Arrangement store={store} search={search} onGo={onGo} />
      </div>
      <Tools
        mayChange={mayChange}
        isUploading={uploads.isUnderWay(store.key)}
        onAsk={what => setAsking({ what })}
        onFiles={upload}
        find={store.find && <FindField find={find} onFind={text => onGo(foundAs(search, text))} />}
      />
      {store.find && find !== undefined ? (
        <Found store={store} search={{ ...search, path, find }} onGo={onGo} />
      ) : (
        <Loaded of={folder}>
          {entries => (
            <Entries
              key={path}
              store={store}
              path={path}
              entries={arrange(entries, order, hidden)}
              mayChange={mayChange}
              onOpen={entry => onGo(openedAs({ ...search, path }, entry))}
              onRename={entry => setAsking({ what: 'rename', entry })}
              onMode={entry => setAsking({ what: 'mode', entry })}
              onRemove={entry => setAsking({ what: 'remove', entry })}
            />
          )}
        </Loaded>
      )}
      {asking && (
        <Question
          of={asking}
          store={store}
          path={path}
          change={change}
          onClose={() => setAsking(null)}
          onAsk={setAsking}
          onOpenFile={file => onGo({ ...search, file })}
        />
      )}
    </div>
  );
}

type ToolsProps = {
  mayChange: boolean;
  isUploading: boolean;
  onAsk: (what: 'file' | 'folder') => void;
  onFiles: ComponentProps<typeof UploadButtons>['onFiles'];
  find: ReactNode;
};

/** Actions on a folder as a whole. */
function Tools({ mayChange, isUploading, onAsk, onFiles, find }: ToolsProps) {
  return (
    <div className="row">
      {mayChange && (
        <>
          <button type="button" className="button" onClick={() => onAsk('file')}>
            <FilePlus size={14} /> New file
          </button>
          <button type="button" className="button" onClick={() => onAsk('folder')}>
            <FolderPlus size={14} /> New folder
          </button>
          <UploadButtons disabled={isUploading} onFiles={onFiles} />
        </>
      )}
      <span className="grow" />
      {find}
    </div>
  );
}

/** A folder or a file, opened from the current place. */
const openedAs = (search: FilesSearch, { isFolder, path }: Entry): FilesSearch =>
  isFolder ? { ...search, path } : { ...search, file: path };

/** Chooses a folder by its path, its order, and whether hidden entries are shown. */
function Arrangement({ store, search, onGo }: Pick<FolderViewProps, 'store' | 'search' | 'onGo'>) {
  const { order = 'name', hidden = true } = search;
  return (
    <span className="row">
      <PathBar store={store} onGo={path => onGo({ ...search, path })} />
      <label className="check small muted">
        <input
          type="checkbox"
          checked={hidden}
          onChange={({ target: { checked } }) => {
            const { hidden: _, ...others } = search;
            onGo(checked ? others : { ...search, hidden: false });
          }}
        />
        Hidden files
      </label>
      <select
        aria-label="Order"
        value={order}
        onChange={event => onGo({ ...search, order: event.target.value as FileOrder })}
      >
        {fileOrders.map(name => (
          <option key={name} value={name}>
            {orderNames[name]}
          </option>
        ))}
      </select>
    </span>
  );
}

type AskedModeProps = { of: Entry } & Pick<QuestionProps, 'change' | 'onClose'>;

/** Asks who may read, write and run a file. */
function AskedMode({ of: { name, mode, path }, change, onClose }: AskedModeProps) {
  return (
    <Asked
      title={`Mode of ${name}`}
      label="Mode, an octal number"
      type="text"
      initial={octalMode(mode)}
      pattern="[0-7]{3,4}"
      required
      action="Change"
      onClose={onClose}
      onDone={mode => change({ what: 'mode', path, mode })}
    />
  );
}

type QuestionProps = {
  of: Asking;
  store: FileStore;
  path: string;
  change: Change;
  onClose: () => void;
  onAsk: (next: Asking) => void;
  onOpenFile: (path: string) => void;
};

/** Asks what to create or remove, and makes it happen. */
function Question({ of, store, path, change, onClose, onAsk, onOpenFile }: QuestionProps) {
  const toast = useToast();
  const fail = (error: Error) => toast({ kind: 'danger', text: error.message });
  const rename = (from: string, to: string) => change({ what: 'rename', path: from, to });
  if (of.what === 'replace')
    return (
      <Confirm
        title={`Replace ${nameOf(of.to)}?`}
        action="Replace"
        onClose={onClose}
        onConfirm={() => {
          onClose();
          rename(of.entry.path, of.to);
        }}
      >
        <p className="muted">It is there already, and what is in it now would go.</p>
      </Confirm>
    );
  if (of.what === 'remove')
    return (
      <Confirm
        title={`Delete ${of.entry.name}?`}
        action="Delete"
        onClose={onClose}
        onConfirm={() => {
          onClose();
          change({ what: 'remove', path: of.entry.path });
        }}
      >
        {of.entry.isFolder && <p className="muted">Everything in it goes too.</p>}
      </Confirm>
    );
  if (of.what === 'mode') return <AskedMode of={of.entry} change={change} onClose={onClose} />;
  const asked = (title: string, action: string, onDone: (to: string) => void, name?: string) => (
    <Asked
      title={title}
      label={name === undefined ? 'Name' : 'New name'}
      type="text"
      {...(name !== undefined && { initial: name })}
      required
      action={action}
      onClose={onClose}
      onDone={text => onDone(joinPath(path, text))}
    />
  );
  if (of.what === 'folder') return asked('New folder', 'Make', to => change({ what: 'folder', path: to }));
  if (of.what === 'file')
    return asked('New file', 'Make', to => {
      const make = async () => {
        if (await isThere(store, to)) return fail(new Error(`${nameOf(to)} is there already`));
        change({ what: 'write', path: to, text: '' }, () => onOpenFile(to));
      };
      void make().catch(fail);
    });
  const { entry } = of;
  const renameTo = async (to: string) => {
    if (to === entry.path) return;
    if (await isThere(store, to)) onAsk({ what: 'replace', entry, to });
    else rename(entry.path, to);
  };
  return asked(`Rename ${entry.name}`, 'Rename', to => void renameTo(to).catch(fail), entry.name);
}
