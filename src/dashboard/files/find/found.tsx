import { useQuery } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { Empty } from '../../parts/bits.tsx';
import { formText } from '../../parts/form-text.ts';
import { Loaded } from '../../parts/loaded.tsx';
import type { FilesSearch } from '../search.ts';
import type { FileStore } from '../store.ts';

type FoundProps = {
  store: FileStore;
  search: FilesSearch & { path: string; find: string };
  onGo: (search: FilesSearch) => void;
};

/** The lines in a folder's files that contain a text. */
export function Found({ store, search, onGo }: FoundProps) {
  const { path, find: text } = search;
  const found = useQuery({
    queryKey: ['found', store.key, path, text],
    // A search that takes long ends when the user leaves it: it occupies one of the few connections.
    queryFn: async ({ signal }) =>
      (await store.find?.(path, text, signal)) ?? { hits: [], isMore: false, isTimedOut: false },
    refetchOnWindowFocus: false,
  });
  return (
    <>
      <div className="row">
        <button
          type="button"
          className="chip"
          title="Show the folder again"
          onClick={() => onGo(foundAs(search, undefined))}
        >
          {text} <X size={12} aria-hidden />
        </button>
        {found.data && (
          <span className="small muted" aria-live="polite">
            {found.data.isMore ? `The first ${found.data.hits.length} lines` : `${found.data.hits.length} lines`}
            {found.data.isTimedOut && '; not all files were looked at within a minute'}
          </span>
        )}
      </div>
      <Loaded of={found}>
        {({ hits, isTimedOut }) =>
          hits.length === 0 ? (
            <div className="table-wrap">
              <Empty title={isTimedOut ? 'Nothing was found in a minute' : 'No file here has that'} />
            </div>
          ) : (
            <div className="table-wrap found" tabIndex={0} role="region" aria-label="Found lines">
              <ol>
                {hits.map(hit => (
                  <li key={`${hit.path} ${hit.line}`}>
                    <button
                      type="button"
                      className="linklike mono"
                      onClick={() => onGo({ ...search, file: hit.path, line: hit.line })}
                    >
                      {within(path, hit.path)}:{hit.line}
                    </button>
                    <span className="mono cut" title={hit.text}>
                      {hit.text}
                    </span>
                  </li>
                ))}
              </ol>
            </div>
          )
        }
      </Loaded>
    </>
  );
}

/** The same state with a search in all files, or without one. */
export function foundAs({ find: _, ...others }: FilesSearch, text: string | undefined): FilesSearch {
  return text === undefined ? others : { ...others, find: text };
}

/** A path relative to a folder. */
const within = (folder: string, path: string): string =>
  path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;

type FindFieldProps = { find: string | undefined; onFind: (text: string | undefined) => void };

/** Asks for the text to find in all files of a folder. */
export function FindField({ find, onFind }: FindFieldProps) {
  return (
    <form
      key={find}
      className="row"
      onSubmit={event => {
        event.preventDefault();
        onFind(formText(event.currentTarget, 'find'));
      }}
    >
      <input
        name="find"
        type="search"
        aria-label="Find in files"
        placeholder="Find in files"
        size={16}
        maxLength={256}
        defaultValue={find}
      />
      <button className="button">Find</button>
    </form>
  );
}
