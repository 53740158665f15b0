import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useChange, useRead } from '../../api/hooks.ts';
import { rowsOfPages } from '../../api/pages.ts';
import type { Template, TemplateContent } from '../../../protocol/api/template.ts';
import { CodeTabs } from '../../code/code.tsx';
import { Dialog, DialogFooter } from '../../parts/dialog.tsx';
import { useBuilds } from './builds.ts';
import { bodyOf, codeOf } from './dockerfile-code.ts';
import type { BuildWish } from './dockerfile-code.ts';

const example = `FROM e2bdev/base
RUN apt-get update && apt-get install -y --no-install-recommends jq
WORKDIR /home/user
`;

type DockerfileSheetProps = {
  name: string;
  /** The ID of the template to build again; otherwise a new one is built. */
  again: string | undefined;
  onClose: () => void;
};

/** Builds a template from a Dockerfile written here, then opens the log of the build. */
export function DockerfileSheet({ name, again, onClose }: DockerfileSheetProps) {
  if (again !== undefined) return <AgainSheet name={name} templateId={again} onClose={onClose} />;
  const first = { name, dockerfile: example, cpuCount: 2, memoryMB: 1024, startCmd: '', readyCmd: '' };
  return <WishSheet first={first} onClose={onClose} />;
}

/**
 * Starts from what is known of the template. Its Dockerfile is not known: the one that was built may have held secrets.
 */
function AgainSheet({ name, templateId, onClose }: { name: string; templateId: string; onClose: () => void }) {
  const builds = useBuilds(templateId);
  // A template without a finished build has no content.
  const content = useRead<TemplateContent>(`/templates/${encodeURIComponent(templateId)}/content`);
  if (builds.isPending || content.isPending) return null;
  const rows = rowsOfPages(builds);
  const { cpuCount = 2, memoryMB = 1024 } = rows.find(({ status }) => status === 'ready') ?? rows[0] ?? {};
  const { startCommand: startCmd = '', readyCommand: readyCmd = '' } = content.data ?? {};
  return (
    <WishSheet first={{ name, dockerfile: '', cpuCount, memoryMB, startCmd, readyCmd }} isAgain onClose={onClose} />
  );
}

type WishSheetProps = { first: BuildWish; isAgain?: boolean; onClose: () => void };

function WishSheet({ first, isAgain, onClose }: WishSheetProps) {
  const [wish, setWish] = useState(first);
  const change = (next: Partial<BuildWish>) => setWish(now => ({ ...now, ...next }));
  const { build, isBusy } = useBuildOf();
  return (
    <Dialog title="Build from a Dockerfile" wide onClose={onClose} onSubmit={() => build(wish)}>
      <div className="columns">
        <div className="stack" style={{ gap: 12 }}>
          <Text label="Name of the template" value={wish.name} required onChange={name => change({ name })} />
          <div className="row" style={{ flexWrap: 'nowrap' }}>
            <Size label="CPUs" min={1} max={32} value={wish.cpuCount} onChange={cpuCount => change({ cpuCount })} />
            <Size
              label="Memory, MiB"
              min={128}
              step={2}
              value={wish.memoryMB}
              onChange={memoryMB => change({ memoryMB })}
            />
          </div>
          <Text
            label="Start command (may be left out)"
            value={wish.startCmd}
            onChange={startCmd => change({ startCmd })}
          />
          <Text
            label="Command that succeeds once it is ready (may be left out)"
            value={wish.readyCmd}
            onChange={readyCmd => change({ readyCmd })}
          />
        </div>
        <label className="field">
          <span>Dockerfile</span>
          <textarea
            className="dockerfile"
            required
            spellCheck={false}
            placeholder={isAgain ? example : undefined}
            maxLength={1 << 20}
            value={wish.dockerfile}
            onChange={event => change({ dockerfile: event.target.value })}
          />
          <span className="small muted">
            {isAgain && 'The Dockerfile of an earlier build is not kept: write here what this one is made from. '}
            There is no folder to copy files from here: fetch them in a RUN, or build by an SDK.
          </span>
        </label>
      </div>
      <details>
        <summary>The same from a program</summary>
        <div style={{ marginTop: 8 }}>
          <CodeTabs texts={codeOf(wish, location.origin)} />
        </div>
      </details>
      <DialogFooter action={isBusy ? 'Beginning…' : 'Build'} busy={isBusy} onClose={onClose} />
    </Dialog>
  );
}

/** Registers a build, starts it, and leads to its log. */
function useBuildOf() {
  const navigate = useNavigate();
  const register = useChange<Template>(null, ['/templates']);
  const start = useChange('The build has begun', ['/templates']);
  const show = (templateId: string, buildId: string) =>
    void navigate({ to: '/templates/$templateId/builds/$buildId', params: { templateId, buildId } });
  const build = (wish: BuildWish) =>
    register.mutate({
      method: 'POST',
      path: '/templates',
      body: bodyOf(wish),
      then: ({ templateID, buildID }) =>
        start.mutate({
          method: 'POST',
          path: `/templates/${templateID}/builds/${buildID}`,
          then: () => show(templateID, buildID),
        }),
    });
  return { build, isBusy: register.isPending || start.isPending };
}

type TextProps = { label: string; value: string; required?: boolean; onChange: (value: string) => void };

function Text({ label, value, required, onChange }: TextProps) {
  return (
    <label className="field">
      <span>{label}</span>
      <input value={value} maxLength={1000} required={required} onChange={event => onChange(event.target.value)} />
    </label>
  );
}

type SizeProps = {
  label: string;
  min: number;
  max?: number;
  step?: number;
  value: number;
  onChange: (value: number) => void;
};

function Size({ label, onChange, ...of }: SizeProps) {
  return (
    <label className="field grow">
      <span>{label}</span>
      <input type="number" required {...of} onChange={event => onChange(event.target.valueAsNumber || 0)} />
    </label>
  );
}
