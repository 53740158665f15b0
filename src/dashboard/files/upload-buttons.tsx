import { FolderUp, Upload as UploadIcon } from 'lucide-react';
import { useRef } from 'react';
import { chosenFiles } from './dropped.ts';
import type { Upload } from './dropped.ts';

/** Asks for files, or for a folder with everything in it. */
export function UploadButtons({ disabled, onFiles }: { disabled: boolean; onFiles: (uploads: Upload[]) => void }) {
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const take = (input: HTMLInputElement) => {
    onFiles(chosenFiles([...(input.files ?? [])]));
    // So that the same file can be chosen again.
    input.value = '';
  };
  return (
    <>
      <button type="button" className="button" disabled={disabled} onClick={() => files.current?.click()}>
        <UploadIcon size={14} /> Upload
      </button>
      <button type="button" className="button" disabled={disabled} onClick={() => folder.current?.click()}>
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
          // React does not know this property of an input.
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
