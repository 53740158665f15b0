import type { SandboxResources, StartedImage } from './node.ts';
import type { DriverName } from './driver.ts';

/** Builds of templates on a node. Part of the node protocol: plain JSON, so that it works over a connection too. */

/** Credentials for a private registry, with the members of the REST API. */
export type RegistryCredential =
  | { type: 'registry'; username: string; password: string }
  | { type: 'aws'; awsAccessKeyId: string; awsSecretAccessKey: string; awsRegion: string }
  | { type: 'gcp'; serviceAccountJson: string };

/** The result of a build's steps so far, without the file system. */
export type BuildState = {
  /** Layer digests, lowest first. */
  layers: string[];
  env: Record<string, string>;
  user: string;
  /** Empty: the user's home directory. */
  workdir: string;
};

/** Start of a build: an image by name, the result of another build, or the last stage of a Dockerfile. */
export type BuildSource =
  | { kind: 'image'; reference: string; credential?: RegistryCredential }
  | { kind: 'state'; state: BuildState; /** What every sandbox has is added, as to an image. */ provisions?: boolean }
  | {
      kind: 'dockerfile';
      stages: DockerStage[];
      /** Templates that stand in for images of these names. */ templates: Record<string, BuildState>;
    };

/** Text that a Dockerfile holds inline. `expand`: variables in it are replaced. */
export type Heredoc = { name: string; content: string; expand: boolean };

/** A directory that outlives the builds that use it, or one that only the command sees (`RUN --mount`). */
export type DockerMount = {
  kind: 'cache' | 'tmpfs';
  target: string;
  id: string;
  /** Absent: root owns it. */
  owner?: { uid: number; gid: number };
  /** Permission bits; absent: those it has already. */
  mode?: number;
};

/** An instruction of a Dockerfile as written: variables are expanded when it runs. */
export type DockerInstruction = { line: number; text: string } & (
  | { kind: 'arg'; name: string; value: string | null }
  | { kind: 'env'; pairs: [string, string][] }
  | {
      kind: 'run';
      command: string | string[];
      heredocs: Heredoc[];
      mounts: DockerMount[];
      /** Absent: the usual network of build steps. */
      network?: 'none';
    }
  | { kind: 'copy'; from: string; sources: string[]; destination: string; chown: string; chmod: string }
  | { kind: 'write'; files: Heredoc[]; destination: string; chown: string; chmod: string }
  | { kind: 'workdir'; path: string }
  | { kind: 'user'; name: string }
  | { kind: 'shell'; argv: string[] }
  | { kind: 'entrypoint' | 'cmd'; command: string | string[] }
);

/** One stage of a Dockerfile. */
export type DockerStage = {
  /** An image, `scratch`, or the name or number of an earlier stage. */
  from: string;
  name: string | null;
  /** Defaults of `ARG`s before the first `FROM`. */
  globalArgs: Record<string, string>;
  instructions: DockerInstruction[];
};

/** One step of a template's definition (E2B: `TemplateStep`). */
export type BuildStep = {
  /** `RUN`, `COPY`, `ENV`, `USER`, `WORKDIR`, in any case; anything else fails the build. */
  type: string;
  args: string[];
  /** SHA-256 of uploaded files, hex. */
  filesHash?: string;
  /** Ignore the cache for this step and all later ones. */
  force: boolean;
};

/** Who may build templates: every team, the operator alone, or nobody. Shipped templates are always built. */
export type BuildsAllowed = 'on' | 'admin' | 'off';

/** A request to start a build. The same `buildId` starts one build, however often it is requested. */
export type StartBuild = {
  buildId: string;
  templateId: string;
  teamId: string;
  source: BuildSource;
  steps: BuildStep[];
  /** Ignore the cache. */
  force: boolean;
  /** Switch to the user `user` before the first step. */
  startsAsUser: boolean;
  startCommand?: string;
  readyCommand?: string;
  resources: SandboxResources;
  /** Driver of the steps; absent: the node's default. */
  driver?: DriverName;
  /** In a cluster: the build asks control for the outcomes of steps that this node has not carried out before. */
  sharesSteps?: boolean;
};

/** The outcome of a step: a layer, or null where it changed no file. */
export type StepOutcome = { layer: string | null };

/** A step that a build has carried out; `key` is the digest of all that the step depends on. */
export type MadeStep = StepOutcome & { key: string };

/** Importance of a line of a build's log. */
export type BuildLogLevel = 'debug' | 'info' | 'warn' | 'error';

/** One line of a build's log. */
export type BuildLogEntry = {
  timestampMs: number;
  level: BuildLogLevel;
  message: string;
  /** `base`, `finalize`, or the step's number counted from 1. */
  step?: string;
};

/** The end of a build. */
export type BuildResult =
  | {
      status: 'ready';
      state: BuildState;
      startCommand?: string;
      readyCommand?: string;
      /** The sandbox with its start command running; absent where the node could not keep it. */
      started?: StartedImage;
      /** All layers together, MiB. */
      layersMiB: number;
    }
  | { status: 'error'; message: string; step?: string };

/** The most that one answer about a build's progress holds: lines, characters of each, and steps. */
export const progressBounds = { entries: 1_000, messageCharacters: 8_192, made: 10_000 } as const;

/** The news of a build. */
export type BuildProgress = {
  entries: BuildLogEntry[];
  /** The cursor for what follows. */
  next: number;
  /** The key of a step whose outcome another node may have: the build asks for it, see `answer`. */
  question?: string;
  /** Present when no entries follow. */
  result?: BuildResult;
  /** Comes with the result of a build that shares its steps: the steps that the build carried out. */
  made?: MadeStep[];
};

/** Builds of templates on one node. */
export type BuildProtocol = {
  /**
   * Reads a Dockerfile, in a process without rights. Errors: `invalid`, with the line, for anything that can't be
   * built.
   */
  readDockerfile(text: string): Promise<DockerStage[]>;
  /**
   * Starts a build; starting the same build again changes nothing. Errors: `unavailable` when as many builds run as are
   * allowed.
   */
  start(request: StartBuild): Promise<void>;
  /**
   * The log after entry number `after`, and the result. Answers when there is news, at the latest after `waitMs`.
   * Errors: `not_found` for builds that this node does not know: they ended with its process.
   */
  progress(buildId: string, after: number, waitMs: number): Promise<BuildProgress>;
  /** Ends a build for the given reason and answers when nothing of it runs any more. */
  cancel(buildId: string, reason: string): Promise<void>;
  /** Drops the log of a build whose result the caller has read completely. */
  forget(buildId: string): Promise<void>;
  /**
   * Deletes cached steps, cache mounts and uploaded files, the least recently used first, until they take no more than
   * the node's limit. Also deletes all layers that no cached step, running sandbox, running build or `keep` needs.
   * Where all layers take more than the node's limit, it deletes layers of `keep` too: the least recently used of those
   * in `replaceable`, which can be fetched again from elsewhere.
   */
  collect(
    keep: string[],
    replaceable?: string[],
  ): Promise<{ layersDeleted: number; filesDeleted: number; bytesFreed: number }>;
  /** Sizes of those layers that are here: bytes by digest. */
  layerBytes(digests: string[]): Promise<Record<string, number>>;
};

/** The same on a node of a cluster, where control helps. */
export type NodeBuildProtocol = BuildProtocol & {
  /** Answers a build's question: the layer is on the node by now. Null: nobody has that outcome. */
  answer(buildId: string, key: string, outcome: StepOutcome | null): Promise<void>;
};
