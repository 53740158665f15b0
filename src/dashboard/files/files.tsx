import { FileView } from './file-view.tsx';
import { FolderView } from './folder-view.tsx';
import type { FilesSearch } from './search.ts';
import type { FileStore } from './store.ts';

type FilesProps = {
  store: FileStore;
  search: FilesSearch;
  /** Goes to another state of the URL. */
  onGo: (search: FilesSearch) => void;
  /** If false, nothing can be changed. */
  mayChange: boolean;
};

/** Files: folders, what is in them, upload, edit, download. */
export function Files({ store, search, onGo, mayChange }: FilesProps) {
  const { file, line, ...folder } = search;
  return file === undefined ? (
    <FolderView store={store} search={search} onGo={onGo} mayChange={mayChange} />
  ) : (
    <FileView key={file} store={store} path={file} line={line} mayChange={mayChange} onClose={() => onGo(folder)} />
  );
}
