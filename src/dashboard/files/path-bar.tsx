import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { folderOf } from './paths.ts';
import type { FileStore } from './store.ts';

/** Folders that are offered at a time. */
const offeredMax = 200;

/** Goes to a folder whose path is typed; those that it may become are offered meanwhile. */
export function PathBar({ store, onGo }: { store: FileStore; onGo: (path: string) => void }) {
  const id = useId();
  const [text, setText] = useState('');
  const folder = folderOf(text);
  const { data: entries = [] } = useQuery({
    queryKey: ['files', store.key, folder],
    queryFn: () => store.list(folder),
    enabled: text.startsWith('/'),
    // What is half typed need not be there.
    retry: false,
  });
  const offered = entries.filter(({ isFolder, path }) => isFolder && path.startsWith(text)).slice(0, offeredMax);
  return (
    <form
      onSubmit={event => {
        event.preventDefault();
        if (!text.startsWith('/')) return;
        onGo(text.replace(/\/$/, '') || '/');
        setText('');
      }}
    >
      <input
        aria-label="Go to a path"
        placeholder="/path"
        list={id}
        size={18}
        maxLength={4096}
        spellCheck={false}
        autoComplete="off"
        value={text}
        onChange={event => setText(event.target.value)}
      />
      <datalist id={id}>
        {offered.map(({ path }) => (
          <option key={path} value={path} />
        ))}
      </datalist>
    </form>
  );
}
