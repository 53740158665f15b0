import { FolderUp, Upload } from 'lucide-react';
import { useRef } from 'react';

/** Asks for files, or for a folder with all that is in it; each file knows its path in the folder. */
export function UploadButtons({ onFiles }: { onFiles: (files: File[]) => void }) {
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const take = (input: HTMLInputElement) => {
    onFiles([...(input.files ?? [])]);
    // The same may be chosen again.
    input.value = '';
  };
  return (
    <>
      <button type="button" className="button" onClick={() => files.current?.click()}>
        <Upload size={14} /> Upload
      </button>
      <button type="button" className="button" onClick={() => folder.current?.click()}>
        <FolderUp size={14} /> Upload a folder
      </button>
      <input
        ref={files}
        type="file"
        multiple
        hidden
        aria-label="Files to upload"
        onChange={event => take(event.target)}
      />
      <input
        ref={element => {
          folder.current = element;
          // React knows no such property of an input.
          if (element) element.webkitdirectory = true;
        }}
        type="file"
        hidden
        aria-label="Folder to upload"
        onChange={event => take(event.target)}
      />
    </>
  );
}
