import { Download, File, Folder, Pencil, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { formatBytes, formatCount } from '../format.ts';
import { Ago, Name } from '../parts/bits.tsx';
import { Table } from '../parts/table.tsx';
import { useToast } from '../parts/toasts.tsx';
import { More } from '../parts/rows/more.tsx';
import { downloadFile, downloadFolder } from './download.ts';
import type { Entry, FileStore } from './store.ts';

type EntriesProps = {
  store: FileStore;
  path: string;
  entries: Entry[];
  mayChange: boolean;
  onOpen: (entry: Entry) => void;
  onRename: (entry: Entry) => void;
  onMode: (entry: Entry) => void;
  onRemove: (entry: Entry) => void;
};

/** Entries drawn at a time: each has times and buttons, and a folder may have a hundred thousand. */
const drawnAtOnce = 200;

/** The entries of a folder as rows: as many as the user has scrolled to. */
export function Entries(props: EntriesProps) {
  const { entries } = props;
  const [drawn, setDrawn] = useState(drawnAtOnce);
  const left = entries.length - drawn;
  return (
    <>
      <EntryTable {...props} entries={entries.slice(0, drawn)} />
      {left > 0 && (
        <div className="row">
          <More isComing={false} isBusy={false} onMore={() => setDrawn(before => before + drawnAtOnce)} />
          <span className="small muted num" role="status">
            {formatCount(drawn)} of {formatCount(entries.length)} are shown
          </span>
        </div>
      )}
    </>
  );
}

function EntryTable({ store, path, entries, mayChange, onOpen, onRename, onMode, onRemove }: EntriesProps) {
  const toast = useToast();
  const download = (entry: Entry) =>
    void (entry.isFolder ? downloadFolder : downloadFile)(store, entry.path).catch((error: Error) =>
      toast({ kind: 'danger', text: error.message }),
    );
  const button = (name: string, icon: React.ReactNode, onClick: () => void) => (
    <button type="button" className="button bare tiny" aria-label={name} title={name} onClick={onClick}>
      {icon}
    </button>
  );
  return (
    <Table
      label={`Content of ${path}`}
      rows={entries}
      keyOf={({ name }) => name}
      empty={mayChange ? 'This folder is empty: drop files here to upload them' : 'This folder is empty'}
      columns={[
        {
          name: 'Name',
          of: entry => (
            <button
              type="button"
              className="linklike row mono"
              style={{ gap: 7, flexWrap: 'nowrap' }}
              onClick={() => onOpen(entry)}
            >
              {entry.isFolder ? <Folder size={15} aria-label="Folder" /> : <File size={15} aria-label="File" />}
              <Name text={entry.name} />
            </button>
          ),
        },
        { name: 'Size', end: true, of: ({ isFolder, bytes }) => (isFolder ? '' : formatBytes(bytes)) },
        { name: 'Changed', of: ({ changedAt }) => <Ago at={changedAt} /> },
        { name: 'Owner', of: ({ owner }) => owner },
        {
          name: 'Mode',
          of: entry =>
            mayChange && store.changeMode ? (
              <button
                type="button"
                className="linklike mono"
                aria-label={`Mode of ${entry.name}: ${entry.mode}`}
                onClick={() => onMode(entry)}
              >
                {entry.mode}
              </button>
            ) : (
              <span className="mono muted">{entry.mode}</span>
            ),
        },
        {
          name: ' ',
          end: true,
          of: entry => (
            <span className="row" style={{ justifyContent: 'flex-end', flexWrap: 'nowrap', gap: 0 }}>
              {(!entry.isFolder || store.archive) &&
                button(`Download ${entry.name}`, <Download size={14} />, () => download(entry))}
              {mayChange && store.rename && button(`Rename ${entry.name}`, <Pencil size={14} />, () => onRename(entry))}
              {mayChange && button(`Delete ${entry.name}`, <Trash2 size={14} />, () => onRemove(entry))}
            </span>
          ),
        },
      ]}
    />
  );
}
