import type { CopyOptions } from './copy-files.ts';
import type { ImageLimits } from '../erofs/writer.ts';

/** One layer to be made by the layer program. Paths are as the program's own root shows them, one character for each byte. */
export type LayerJob = { image: string; limits: ImageLimits } & (
  | {
      /** From an image's layer archive, which is the program's input. */
      kind: 'import';
      /** Digest that the uncompressed archive must have. */
      diffId?: string;
    }
  | { kind: 'seal'; upper: string; excluded: string[] }
  /** From uploaded files, whose archive is the program's input, above the layers that `view` shows. */
  | { kind: 'copy'; view: string; copy: CopyOptions }
  /** From other layers, which `from` shows. Sources are absolute and may have globs. */
  | { kind: 'copy-between'; view: string; from: string; sources: string[]; copy: CopyOptions }
  /** A directory, made where it is missing. */
  | { kind: 'directory'; view: string; path: string; owner: { uid: number; gid: number } }
);

/** What the layer program answers: null when the layer would hold nothing. */
export type LayerMade = { digest: string; bytes: number; inodes: number } | null;

/** The program's only line of output. */
export type LayerAnswer = { ok: LayerMade } | { error: { code: string; message: string } };
