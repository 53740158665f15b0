import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useChange } from '../../api/hooks.ts';
import type { Template } from '../../../protocol/api/template.ts';
import { CodeTabs } from '../../code/code.tsx';
import { Dialog, DialogFooter } from '../../parts/dialog.tsx';
import { bodyOf, codeOf } from './dockerfile-code.ts';
import type { BuildWish } from './dockerfile-code.ts';

const example = `FROM e2bdev/base
RUN apt-get update && apt-get install -y --no-install-recommends jq
WORKDIR /home/user
`;

/** Builds a template from a Dockerfile that is written here, and leads to the log of the build. */
export function DockerfileSheet({ name, onClose }: { name: string; onClose: () => void }) {
  const [wish, setWish] = useState<BuildWish>({
    name,
    dockerfile: example,
    cpuCount: 2,
    memoryMB: 1024,
    startCmd: '',
    readyCmd: '',
  });
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
            maxLength={1 << 20}
            value={wish.dockerfile}
            onChange={event => change({ dockerfile: event.target.value })}
          />
          <span className="small muted">
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
