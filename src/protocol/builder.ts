import type { DockerStage, RegistryCredential } from './build.ts';

/**
 * The messages of a builder: a process without rights that reads strangers' bytes. It gets one job as the first line of
 * its input, may ask questions, and answers on its output; each message is a line of JSON. It finds the files of its
 * job in its root by name; it reads descriptor 3 and writes descriptor 4.
 */

/** Limits of one layer. */
export type ImageLimits = { bytesMax: number; inodesMax: number };

/** The destination of copied files. User names are those of the layers that `view` shows. */
export type CopyOptions = {
  /** File, directory or link in the archive. From the first glob character on it only says what the archive holds. */
  source: string;
  /** A `/` at the end means a directory. */
  destination: string;
  /** Base of a relative destination; empty: the home directory of `user`. */
  workdir: string;
  user: string;
  /** `name`, `name:group` or numbers; empty: `user`; absent: as in the archive. */
  owner?: string;
  /** Permission bits for everything but links; absent: those in the archive. */
  mode?: number;
};

/** One layer to make, written to descriptor 4. */
export type LayerJob = { limits: ImageLimits } &
  /** From an image's layer archive. `diffId` is the digest that the uncompressed archive must have. */
  (
    | { kind: 'import'; diffId?: string }
    /**
     * From what `upper` shows, without the excluded paths in it. `marked`: overlay's marks on its directories can be
     * read.
     */
    | { kind: 'pack'; excluded: string[]; marked: boolean }
    /** From uploaded files, an archive, on top of the layers that `view` shows. */
    | { kind: 'copy'; copy: CopyOptions }
    /** From other layers, which `from` shows. Sources may have globs. */
    | { kind: 'copy-between'; sources: string[]; copy: CopyOptions }
    /** A directory, made where it is missing. */
    | { kind: 'directory'; path: string; user: string }
  );

/** The number of a layer's bytes and files; null when the layer would be empty. */
export type LayerMade = { bytes: number; inodes: number } | null;

/** A repository of a registry that a stranger may have chosen, and how to access it. */
export type RegistryAccess = {
  /** Host of the registry, with a port where it is not the usual one. */
  host: string;
  repository: string;
  /** The image's name, for errors. */
  name: string;
  /** Without TLS. */
  http: boolean;
  login?: Login;
  /** `Authorization` that the registry accepted earlier. */
  authorization?: string;
  /** More trusted authorities, PEM. */
  authorities?: string;
};
/** Credentials for HTTP basic authentication at a registry. */
export type Login = { username: string; password: string };

/** The most layers of one image: as many as an overlay takes, without the sandbox's own upper layer. */
export const imageLayersMax = 127;

/** An image for this machine, as described by its manifest and configuration. */
export type ImageDescription = {
  /** Digest of the manifest. */
  digest: string;
  env: Record<string, string>;
  layers: { digest: string; size: number; diffId: string }[];
};

/** The job of a builder: each builder is a process for one job. */
export type BuilderJob =
  | LayerJob
  | { kind: 'dockerfile'; text: string }
  /** Says which of the files exist, and what the layers that `view` shows say about a user. */
  | { kind: 'look'; files: string[]; user: string }
  /** Reads the plan of a dev container that a step has left in the layers that `view` shows. */
  | { kind: 'dev-container' }
  /** Computes the SHA-256 of descriptor 3, `sha256:<hex>`. */
  | { kind: 'digest' }
  | { kind: 'registry-image'; access: RegistryAccess; credential?: RegistryCredential; version: string }
  /** Copies the content of a blob, unchanged, to descriptor 4. */
  | { kind: 'registry-blob'; access: RegistryAccess; digest: string; bytesMax: number }
  /** The same from an archive or layout that `image` shows. */
  | { kind: 'file-image' }
  | { kind: 'file-blob'; version: string; digest: string; bytesMax: number };

/**
 * How a dev container is made: the stages of its image, and the folder that goes into it. Files of the layers
 * themselves appear in the stages as files of the image `devContainerContext`.
 */
export type DevContainer = { workspace: string; stages: DockerStage[] };

/** Stands for the layers that contain a dev container's plan. No stage can have this name. */
export const devContainerContext = ':dev-container';

/** Answer of a `look`. `known`: the user has a name there. */
export type Looked = { files: boolean[]; user: { home: string; known: boolean } };
/** An image, and the credentials for its blobs. */
export type FoundImage = { image: ImageDescription; login?: Login; authorization?: string };

/** An image in a file; `version` asks for its blobs. */
export type FoundFile = { image: ImageDescription; version: string };

/** The answers to each kind of job. Jobs that write a blob answer nothing. */
export type BuilderAnswers = Record<LayerJob['kind'], LayerMade> & {
  dockerfile: DockerStage[];
  look: Looked;
  'dev-container': DevContainer | null;
  digest: string;
  'registry-image': FoundImage;
  'registry-blob': null;
  'file-image': FoundFile;
  'file-blob': null;
};

/** A builder knows no addresses: the node tells it where a host is, and whether it may be reached. */
export type BuilderQuestion = { resolve: { host: string; isSecure: boolean } };
/** The addresses that the builder may connect to, in the order to try them. */
export type BuilderReply = { addresses: string[] } | { error: { code: string; message: string } };

/** A builder's last line: the answer that `BuilderAnswers` has for the job, or why there is none. */
export type BuilderAnswer<Ok = unknown> = { ok: Ok } | { error: { code: string; message: string } };
