/** An entry of an archive to write. `content` is a file's, `target` a link's. */
export type NewTarEntry = {
  path: string;
  type: 'file' | 'directory' | 'symlink';
  attributes: { mode: number; uid: number; gid: number };
  content?: Uint8Array;
  target?: string;
};

const blockSize = 512;
const flags = { file: '0', directory: '5', symlink: '2' };

/** A tar archive of a few entries with short names (ustar), without times: equal entries give equal bytes. */
export function writeTar(entries: NewTarEntry[]): Uint8Array {
  const blocks = entries.flatMap(({ path, type, attributes, content = new Uint8Array(0), target = '' }) => {
    const header = Buffer.alloc(blockSize);
    const octal = (value: number, offset: number, width: number) =>
      header.write(value.toString(8).padStart(width - 1, '0'), offset, 'latin1');
    header.write(path, 0, 100);
    octal(attributes.mode, 100, 8);
    octal(attributes.uid, 108, 8);
    octal(attributes.gid, 116, 8);
    octal(content.length, 124, 12);
    octal(0, 136, 12);
    header.fill(' ', 148, 156);
    header.write(flags[type], 156);
    header.write(target, 157, 100);
    header.write('ustar\x0000', 257, 'latin1');
    octal(
      header.reduce((sum, byte) => sum + byte, 0),
      148,
      7,
    );
    return [header, content, Buffer.alloc((blockSize - (content.length % blockSize)) % blockSize)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * blockSize)]);
}
