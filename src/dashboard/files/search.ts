/** Orders of a folder's entries. */
export const fileOrders = ['name', 'size', 'changed'] as const;
/** By what a folder is ordered; folders come first. */
export type FileOrder = (typeof fileOrders)[number];

/** What the URL says of files: the folder, the file that is open, how the folder is shown. */
export type FilesSearch = { path?: string; file?: string; order?: FileOrder; hidden?: boolean };

/** Reads the search of a URL that anybody may have written. */
export function readFilesSearch(raw: Record<string, unknown>): FilesSearch {
  const { path, file } = raw;
  const isPath = (value: unknown): value is string => typeof value === 'string' && value.startsWith('/');
  const order = fileOrders.find(one => one === raw['order']);
  return {
    ...(isPath(path) && { path }),
    ...(isPath(file) && { file }),
    ...(order && { order }),
    ...(raw['hidden'] === false && { hidden: false }),
  };
}
