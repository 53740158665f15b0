/** Orders of a folder's entries. */
export const fileOrders = ['name', 'size', 'changed'] as const;
/** By what a folder is ordered; folders come first. */
export type FileOrder = (typeof fileOrders)[number];

/** What the URL says of files: the folder, the file that is open and its line, how the folder is shown. */
export type FilesSearch = {
  path?: string;
  file?: string;
  line?: number;
  order?: FileOrder;
  hidden?: boolean;
  /** What is looked for in all files of the folder. */
  find?: string;
};

/** Reads the search of a URL that anybody may have written. */
export function readFilesSearch(raw: Record<string, unknown>): FilesSearch {
  const { path, file, line, find } = raw;
  const isPath = (value: unknown): value is string => typeof value === 'string' && value.startsWith('/');
  const order = fileOrders.find(one => one === raw['order']);
  return {
    ...(isPath(path) && { path }),
    ...(isPath(file) && { file }),
    ...(typeof line === 'number' && Number.isSafeInteger(line) && line > 0 && { line }),
    // A number in a URL is read as such, and looked for as a text.
    ...((typeof find === 'string' || typeof find === 'number') && find !== '' && { find: String(find) }),
    ...(order && { order }),
    ...(raw['hidden'] === false && { hidden: false }),
  };
}
