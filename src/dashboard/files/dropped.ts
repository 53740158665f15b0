/** A file and where it goes, below the folder that it was put into. */
export type Upload = { file: File; path: string };

/** The files of a drop, those in dropped folders included, each with its path. */
export async function droppedFiles(items: DataTransferItemList): Promise<Upload[]> {
  // The list is empty after the event: everything is taken out of it before anything is awaited.
  const entries = [...items].map(item => item.webkitGetAsEntry()).filter(entry => entry !== null);
  const uploads: Upload[] = [];
  for (const entry of entries) await gather(entry, uploads);
  return uploads;
}

/** Chosen files; those of a folder know their path in it. */
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
    // A reader gives some entries at a time, and none at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const one of some) await gather(one, uploads);
  }
}
