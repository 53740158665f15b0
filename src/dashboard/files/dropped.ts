/** A file and its destination, relative to the target folder. */
export type Upload = { file: File; path: string };

/** The files of a drop, including those in dropped folders, each with its path. */
export async function droppedFiles(items: DataTransferItemList): Promise<Upload[]> {
  // The list is emptied after the event, so everything is taken out of it before any await.
  const entries = [...items].map(item => item.webkitGetAsEntry()).filter(entry => entry !== null);
  const uploads: Upload[] = [];
  for (const entry of entries) await gather(entry, uploads);
  return uploads;
}

/** Chosen files; those of a folder carry their path in it. */
export const chosenFiles = (files: readonly File[]): Upload[] =>
  files.map(file => ({ file, path: file.webkitRelativePath || file.name }));

async function gather(entry: FileSystemEntry, uploads: Upload[]): Promise<void> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    uploads.push({ file, path: entry.fullPath.replace(/^\//, '') });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    // A reader returns a few entries at a time, and none at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const one of some) await gather(one, uploads);
  }
}
