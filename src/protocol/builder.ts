import type { RegistryCredential } from './build.ts';

/**
 * What a builder is asked: a process without rights that reads what strangers wrote. It gets one job as the first line of
 * its input, may ask back, and answers on its output, a line of JSON each. What it is shown, it finds in its root by name;
 * files are its descriptors 3 (to read) and 4 (to write).
 */

/** Of one layer. */
export type ImageLimits = { bytesMax: number; inodesMax: number };

/** Where copied files go. Names of users are those of the layers that `view` shows. */
export type CopyOptions = {
  /** File, directory or link in the archive; from the first glob character on it only says what the archive holds. */
  source: string;
  /** With `/` at the end it is a directory. */
  destination: string;
  /** What a relative destination starts from; empty: the home directory of `user`. */
  workdir: string;
  user: string;
  /** `name`, `name:group` or numbers; empty: `user`; absent: as in the archive. */
  owner?: string;
  /** Permission bits for everything but links; absent: those in the archive. */
  mode?: number;
};

/** One layer to be made, written to descriptor 4. */
export type LayerJob = { limits: ImageLimits } & (
  /** From an image's layer archive. `diffId` is the digest that it must have when it is not compressed. */
  | { kind: 'import'; diffId?: string }
  /** From what `upper` shows, without the excluded paths in it. `marked`: what overlay has noted on its directories can be read. */
  | { kind: 'seal'; excluded: string[]; marked: boolean }
  /** From uploaded files, an archive, above the layers that `view` shows. */
  | { kind: 'copy'; copy: CopyOptions }
  /** From other layers, which `from` shows. Sources may have globs. */
  | { kind: 'copy-between'; sources: string[]; copy: CopyOptions }
  /** A directory, made where it is missing. */
  | { kind: 'directory'; path: string; user: string }
);

/** The number of a layer's bytes and files; null when the layer would hold nothing. */
export type LayerMade = { bytes: number; inodes: number } | null;

/** A repository of a registry that a stranger may have chosen, and how to ask it. */
export type RegistryAccess = {
  /** Where it is served: host, with a port where it is not the usual one. */
  host: string;
  repository: string;
  /** As errors name the image. */
  name: string;
  /** Without TLS. */
  http: boolean;
  login?: Login;
  /** What it took for an answer before. */
  authorization?: string;
  /** Authorities that are trusted beside the usual ones, PEM. */
  authorities?: string;
};
export type Login = { username: string; password: string };

/** An image for this machine, as its manifest and configuration say. */
export type ImageDescription = {
  /** Of the manifest. */
  digest: string;
  env: Record<string, string>;
  layers: { digest: string; size: number; diffId: string }[];
};

export type BuilderJob =
  | LayerJob
  | { kind: 'dockerfile'; text: string }
  /** Whether there are such files, and what the layers that `view` shows say of a user. */
  | { kind: 'look'; files: string[]; user: string }
  /** SHA-256 of descriptor 3, `sha256:<hex>`. */
  | { kind: 'digest' }
  | { kind: 'registry-image'; access: RegistryAccess; credential?: RegistryCredential; version: string }
  /** The content of a blob, as it is, to descriptor 4. */
  | { kind: 'registry-blob'; access: RegistryAccess; digest: string; bytesMax: number }
  /** The same from an archive or layout that `image` shows. */
  | { kind: 'file-image' }
  | { kind: 'file-blob'; version: string; digest: string; bytesMax: number };

/** What a `look` answers. `known`: it has a name there. */
export type Looked = { files: boolean[]; user: { home: string; known: boolean } };
/** What is known of an image, with what its blobs are asked for with. */
export type FoundImage = { image: ImageDescription; login?: Login; authorization?: string };

/** A builder knows no addresses of its own: where a host is, and whether it may be reached, it is told. */
export type BuilderQuestion = { resolve: { host: string; isSecure: boolean } };
/** The addresses that it may connect to, to be tried in order. */
export type BuilderReply = { addresses: string[] } | { error: { code: string; message: string } };

/** Its last line. */
export type BuilderAnswer = { ok: unknown } | { error: { code: string; message: string } };
