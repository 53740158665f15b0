/** Sort orders of a folder's entries. */
export const fileOrders = ['name', 'size', 'changed'] as const;
/** How a folder is sorted; folders come first. */
export type FileOrder = (typeof fileOrders)[number];

/** The files' state in the URL: the folder, the open file and its line, how the folder is shown. */
export type FilesSearch = {
  path?: string;
  file?: string;
  line?: number;
  order?: FileOrder;
  hidden?: boolean;
  /** The text to find in all files of the folder. */
  find?: string;
};

/** Reads the search part of a URL, which anybody may have written. */
export function readFilesSearch(raw: Record<string, unknown>): FilesSearch {
  const { path, file, line, find } = raw;
  const isPath = (value: unknown): value is string => typeof value === 'string' && value.startsWith('/');
  const order = fileOrders.find(one => one === raw['order']);
  return {
    ...(isPath(path) && { path }),
    ...(isPath(file) && { file }),
    ...(typeof line === 'number' && Number.isSafeInteger(line) && line > 0 && { line }),
    // A number in a URL is parsed as such, but searched as a text.
    ...((typeof find === 'string' || typeof find === 'number') && find !== '' && { find: String(find) }),
    ...(order && { order }),
    ...(raw['hidden'] === false && { hidden: false }),
  };
}
