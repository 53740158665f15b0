import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { File, Folder, FolderPlus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { agentFile, callAgent } from '../../../api/agent.ts';
import type { Target } from '../../../api/agent.ts';
import { formatBytes } from '../../../format.ts';
import { Ago } from '../../../parts/bits.tsx';
import { Asked } from '../../../parts/asked.tsx';
import { Confirm } from '../../../parts/dialog.tsx';
import { Loaded } from '../../../parts/loaded.tsx';
import { Table } from '../../../parts/table.tsx';
import { useToast } from '../../../parts/toasts.tsx';
import { FileView } from './file-view.tsx';
import { NeedsRunning } from '../needs-running.tsx';
import { Crumbs } from './crumbs.tsx';
import { UploadButtons } from './upload-buttons.tsx';
import { joinPath } from './paths.ts';
import { useTarget } from '../target.ts';

/** What the URL says of the files page: the folder, and the file that is open. */
export type FilesSearch = { path?: string; file?: string };

/** Reads the search of a URL that anybody may have written. */
export function readFilesSearch(raw: Record<string, unknown>): FilesSearch {
  const { path, file } = raw;
  const isPath = (value: unknown): value is string => typeof value === 'string' && value.startsWith('/');
  return { ...(isPath(path) && { path }), ...(isPath(file) && { file }) };
}

type Entry = {
  name: string;
  path: string;
  type?: string;
  size?: string | number;
  modifiedTime?: string;
  permissions?: string;
  owner?: string;
};

const home = '/home/user';

/** The files of a sandbox: folders, what is in them, upload, edit, download. */
export function Files() {
  const target = useTarget();
  const { path = home, file }: FilesSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  if (!target) return <NeedsRunning what="Its files" />;
  const go = (search: FilesSearch) => void navigate({ to: '.', search });
  return file === undefined ? (
    <FolderView target={target} path={path} onOpen={go} />
  ) : (
    <FileView target={target} path={file} onClose={() => go({ path })} />
  );
}

/** What is in a folder, and how it is changed; what comes of a change is said, and the folder read again. */
function useFolder(target: Target, path: string) {
  const client = useQueryClient();
  const toast = useToast();
  const key = ['files', target.sandboxId, path];
  const folder = useQuery({
    queryKey: key,
    queryFn: () => callAgent<{ entries?: Entry[] }>(target, 'filesystem.Filesystem/ListDir', { path, depth: 1 }),
  });
  const change = async (work: () => Promise<unknown>, done: string) => {
    await work().then(
      () => toast({ kind: 'ok', text: done }),
      (error: Error) => toast({ kind: 'danger', text: error.message }),
    );
    await client.invalidateQueries({ queryKey: key });
  };
  const upload = (files: File[]) =>
    change(
      async () => {
        for (const file of files) {
          const to = joinPath(path, file.webkitRelativePath || file.name);
          await agentFile(
            target,
            { path: to },
            { method: 'POST', headers: { 'Content-Type': 'application/octet-stream' }, body: file },
          );
        }
      },
      files.length === 1 ? `${files[0]?.name} uploaded` : `${files.length} files uploaded`,
    );
  return { folder, change, upload };
}

type FolderViewProps = { target: Target; path: string; onOpen: (search: FilesSearch) => void };

function FolderView({ target, path, onOpen }: FolderViewProps) {
  const [dragged, setDragged] = useState(false);
  const [removing, setRemoving] = useState<Entry | null>(null);
  const { folder, change, upload } = useFolder(target, path);
  const [naming, setNaming] = useState(false);
  return (
    <div
      className={dragged ? 'stack drop' : 'stack'}
      style={{ gap: 8 }}
      onDragOver={event => {
        event.preventDefault();
        setDragged(true);
      }}
      onDragLeave={() => setDragged(false)}
      onDrop={event => {
        event.preventDefault();
        setDragged(false);
        void upload([...event.dataTransfer.files]);
      }}
    >
      <div className="row">
        <Crumbs path={path} onOpen={path => onOpen({ path })} />
        <span className="grow" />
        <button type="button" className="button" onClick={() => setNaming(true)}>
          <FolderPlus size={14} /> New folder
        </button>
        <UploadButtons onFiles={files => void upload(files)} />
      </div>
      <Loaded of={folder}>
        {({ entries = [] }) => <Entries path={path} entries={entries} onOpen={onOpen} onRemove={setRemoving} />}
      </Loaded>
      {naming && (
        <Asked
          title="New folder"
          label="Name"
          type="text"
          action="Make"
          onClose={() => setNaming(false)}
          onDone={name =>
            void change(
              () => callAgent(target, 'filesystem.Filesystem/MakeDir', { path: joinPath(path, name) }),
              'Folder made',
            )
          }
        />
      )}
      {removing && (
        <Confirm
          title={`Delete ${removing.name}?`}
          action="Delete"
          onClose={() => setRemoving(null)}
          onConfirm={() => {
            setRemoving(null);
            void change(() => callAgent(target, 'filesystem.Filesystem/Remove', { path: removing.path }), 'Deleted');
          }}
        >
          {isFolder(removing) && <p className="muted">Everything in it goes too.</p>}
        </Confirm>
      )}
    </div>
  );
}

type EntriesProps = {
  path: string;
  entries: Entry[];
  onOpen: (search: FilesSearch) => void;
  onRemove: (entry: Entry) => void;
};

function Entries({ path, entries, onOpen, onRemove }: EntriesProps) {
  return (
    <Table
      label={`Content of ${path}`}
      rows={entries.toSorted((a, b) => Number(isFolder(b)) - Number(isFolder(a)) || (a.name < b.name ? -1 : 1))}
      keyOf={({ name }) => name}
      empty="This folder is empty: drop files here to upload them"
      columns={[
        {
          name: 'Name',
          of: entry => (
            <button
              type="button"
              className="linklike row mono"
              style={{ gap: 7, flexWrap: 'nowrap' }}
              onClick={() => onOpen(isFolder(entry) ? { path: entry.path } : { path, file: entry.path })}
            >
              {isFolder(entry) ? <Folder size={15} aria-label="Folder" /> : <File size={15} aria-label="File" />}
              {entry.name}
            </button>
          ),
        },
        { name: 'Size', end: true, of: entry => (isFolder(entry) ? '' : formatBytes(Number(entry.size ?? 0))) },
        { name: 'Changed', of: ({ modifiedTime }) => <Ago at={modifiedTime} /> },
        { name: 'Owner', of: ({ owner }) => owner ?? '' },
        { name: 'Mode', of: ({ permissions }) => <span className="mono muted">{permissions}</span> },
        {
          name: ' ',
          end: true,
          of: entry => (
            <button
              type="button"
              className="button bare tiny"
              aria-label={`Delete ${entry.name}`}
              onClick={() => onRemove(entry)}
            >
              <Trash2 size={14} />
            </button>
          ),
        },
      ]}
    />
  );
}

const isFolder = ({ type }: Entry) => type === 'FILE_TYPE_DIRECTORY';
