import type { ShippedProtocol } from '../../protocol/shipped.ts';
import type { SharedUploads } from '../blob/rules/uploads.ts';
import type { AwaitedBuilds } from '../build/rules/awaited.ts';
import type { StartDeps } from '../build/rules/start.ts';
import type { TeamRecord } from '../team/record.ts';
import type { ShippedBuilds } from './builds.ts';

/** The parts of the API that builds of shipped templates use. */
type ShippedParts = StartDeps & {
  /** Folder of uploaded files, and of a definition's files too. */
  filesDir: string;
  sharedUploads: SharedUploads | null;
  /** Creates wait for the builds in it. */
  awaitedBuilds: AwaitedBuilds;
};

/** The operator's settings for shipped templates. */
type ShippedSettings = {
  /** Names of the templates wanted in addition to `base`. */
  templates: readonly string[];
  /** Templates that are built when somebody asks for them. */
  templatesOnDemand: readonly string[];
  /** What `base` starts from: an OCI reference, or the path of a root file system; absent: the platform's own. */
  baseImage?: string | undefined;
};

/** How shipped templates are built. */
export type ShippedTemplatesOptions = {
  parts: ShippedParts;
  /** The part of the work that needs the machine. */
  shipped: ShippedProtocol;
  team: TeamRecord;
  settings: ShippedSettings;
  /** Earlier builds. */
  builds: ShippedBuilds;
  onPhase: (phase: string) => void;
  signal: AbortSignal;
};
