import { expect, test } from 'bun:test';
import { chosenFiles, droppedFiles } from './dropped.ts';

const file = (path: string) => ({
  isFile: true,
  fullPath: path,
  file: (take: (file: File) => void) => take(new File([path], path)),
});

/** A folder whose reader gives two entries at a time. */
const folder = (...entries: object[]) => ({
  isFile: false,
  createReader: () => {
    const left = [...entries];
    return { readEntries: (take: (some: object[]) => void) => take(left.splice(0, 2)) };
  },
});
const dropped = (...entries: (object | null)[]) =>
  droppedFiles(entries.map(entry => ({ webkitGetAsEntry: () => entry })) as unknown as DataTransferItemList);

test('a drop has all files, those of folders at any depth by their paths', async () => {
  const inner = folder(file('/src/deep/c'));
  const uploads = await dropped(file('/a'), null, folder(file('/src/1'), inner, file('/src/2'), file('/src/3')));
  expect(uploads.map(({ path }) => path)).toEqual(['a', 'src/1', 'src/deep/c', 'src/2', 'src/3']);
  expect(await uploads[2]?.file.text()).toBe('/src/deep/c');
  expect(await dropped(folder())).toEqual([]);
});

test('a file that can not be read fails the drop', async () => {
  const broken = { ...file('/a'), file: (_: unknown, fail: (error: Error) => void) => fail(new Error('gone')) };
  await expect(dropped(broken)).rejects.toThrow('gone');
});

test('chosen files of a folder have their path in it, and others their name', () => {
  const [plain, within] = [new File([], 'a'), new File([], 'b')];
  Object.defineProperty(within, 'webkitRelativePath', { value: 'folder/b' });
  expect(chosenFiles([plain, within])).toEqual([
    { file: plain, path: 'a' },
    { file: within, path: 'folder/b' },
  ]);
});
