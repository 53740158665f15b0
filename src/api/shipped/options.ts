import type { ShippedProtocol } from '../../protocol/shipped.ts';
import type { SharedUploads } from '../blob/rules/uploads.ts';
import type { AwaitedBuilds } from '../build/rules/awaited.ts';
import type { StartDeps } from '../build/rules/start.ts';
import type { TeamRecord } from '../team/record.ts';
import type { ShippedBuilds } from './builds.ts';

/** What builds of shipped templates use of the API. */
type ShippedParts = StartDeps & {
  /** Where uploaded files are, and those of a definition too. */
  filesDir: string;
  sharedUploads: SharedUploads | null;
  /** Creates wait for what is in it. */
  awaitedBuilds: AwaitedBuilds;
};

/** What the operator says of shipped templates. */
type ShippedSettings = {
  /** Those that are wanted beside `base`, by name. */
  templates: readonly string[];
  /** Those that are built when somebody asks for them. */
  templatesOnDemand: readonly string[];
  /** What `base` begins from: an OCI reference, or the path of a root file system; absent: the platform's own. */
  baseImage?: string | undefined;
};

/** How shipped templates are built. */
export type ShippedTemplatesOptions = {
  parts: ShippedParts;
  /** The part of the work that needs the machine. */
  shipped: ShippedProtocol;
  team: TeamRecord;
  settings: ShippedSettings;
  /** What was built before. */
  builds: ShippedBuilds;
  onPhase: (phase: string) => void;
  signal: AbortSignal;
};
