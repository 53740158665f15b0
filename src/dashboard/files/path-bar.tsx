import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { folderOf } from './paths.ts';
import type { FileStore } from './store.ts';

/** Folders suggested at a time. */
const offeredMax = 200;

/** Goes to a folder whose path is typed; suggests matching folders meanwhile. */
export function PathBar({ store, onGo }: { store: FileStore; onGo: (path: string) => void }) {
  const id = useId();
  const [text, setText] = useState('');
  const folder = folderOf(text);
  const { data: entries = [] } = useQuery({
    queryKey: ['files', store.key, folder],
    queryFn: () => store.list(folder),
    enabled: text.startsWith('/'),
    // A half-typed path need not exist.
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
