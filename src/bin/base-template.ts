import { join } from 'node:path';
import type { App } from '../api/app/context.ts';
import { defaultSize, registerTemplate } from '../api/app/provision-template.ts';
import { defaultTag } from '../api/app/template-reference.ts';
import { taggedBuild, templateByName } from '../api/store/template-resolve.ts';
import type { TeamRecord } from '../api/store/team.ts';
import { ensureBaseLayer } from '../node/builds/base/base-layer.ts';
import type { Node } from '../node/start.ts';
import { repository } from './repository.ts';
import type { Settings } from './settings.ts';

const alias = 'base';
/** What a sandbox may write beyond its template. */
export const baseDiskMiB = 10_240;

export type BaseTemplateOptions = {
  app: App;
  node: Node;
  team: TeamRecord;
  settings: Settings;
  /** For npm, which may need its user's settings to reach a registry. */
  environment: Record<string, string>;
  onPhase: (phase: string) => void;
  signal: AbortSignal;
};

/** Makes the `base` template where there is none whose layers are all here. */
export async function ensureBaseTemplate({ app, node, team, settings, environment, onPhase, signal }: BaseTemplateOptions): Promise<void> {
  const known = await templateByName(app.store.db, '', alias);
  const build = known && (await taggedBuild(app.store.db, known.templateId, defaultTag));
  if (build?.layers.every(digest => node.layers.has(digest))) return;
  const digest = await ensureBaseLayer({
    layers: node.layers,
    definitionDir: join(repository, 'templates/base'),
    imageArchive: settings.baseImage,
    cacheDir: settings.cacheDir,
    npmEnvironment: environment,
    onPhase,
    signal,
  });
  await registerTemplate(app, team, {
    alias,
    public: true,
    layers: [digest],
    ...defaultSize,
    diskMiB: baseDiskMiB,
    config: { defaultUser: 'user', defaultWorkdir: '', buildEnv: {} },
  });
}
