import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Sandbox } from '../../../protocol/api/sandbox.ts';
import type { Template } from '../../../protocol/api/template.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { CodeTabs } from '../../parts/code.tsx';
import { Dialog, DialogFooter } from '../../parts/dialog.tsx';
import { bodyOf, codeOf, parseLines, parsePairs } from './code.ts';
import type { Wish } from './code.ts';

/** Creates a sandbox, and shows the code that does the same. */
export function CreateSheet({ template, onClose }: { template: string; onClose: () => void }) {
  const navigate = useNavigate();
  const [wish, setWish] = useState<Wish>({
    template,
    timeoutSeconds: 300,
    metadata: {},
    env: {},
    internet: true,
    allow: [],
    deny: [],
    volumes: {},
    pauseAtEnd: false,
  });
  const change = (next: Partial<Wish>) => setWish(now => ({ ...now, ...next }));
  const create = useChange<Sandbox>('Sandbox created', ['/v2/sandboxes']);
  const submit = () =>
    create.mutate({
      method: 'POST',
      path: '/v2/sandboxes',
      body: bodyOf(wish),
      then: ({ sandboxID }) => void navigate({ to: '/sandboxes/$sandboxId', params: { sandboxId: sandboxID } }),
    });
  return (
    <Dialog title="New sandbox" wide onClose={onClose} onSubmit={submit}>
      <div className="columns">
        <div className="stack" style={{ gap: 12 }}>
          <TemplateField value={wish.template} onChange={chosen => change({ template: chosen })} />
          <label className="field">
            <span>Time, in seconds</span>
            <input
              type="number"
              min={1}
              required
              value={wish.timeoutSeconds}
              onChange={event => change({ timeoutSeconds: event.target.valueAsNumber || 0 })}
            />
          </label>
          <Pairs label="Metadata" placeholder="user=ada" onChange={metadata => change({ metadata })} />
          <Pairs label="Environment" placeholder="NODE_ENV=test" onChange={env => change({ env })} />
          <Reach wish={wish} onChange={change} />
        </div>
        <CodeTabs texts={codeOf(wish, location.origin)} />
      </div>
      <DialogFooter action={create.isPending ? 'Creating…' : 'Create'} busy={create.isPending} onClose={onClose} />
    </Dialog>
  );
}

type ReachProps = { wish: Wish; onChange: (next: Partial<Wish>) => void };

/** What the sandbox may reach, what it mounts, and what becomes of it. */
function Reach({ wish, onChange }: ReachProps) {
  return (
    <>
      <Check label="May reach the internet" checked={wish.internet} onChange={internet => onChange({ internet })} />
      <details>
        <summary>Network and volumes</summary>
        <div className="stack" style={{ gap: 12, paddingTop: 10 }}>
          <Lines
            label="Allowed: addresses, blocks and domains, one on a line"
            placeholder="*.npmjs.org"
            onChange={allow => onChange({ allow })}
          />
          <Lines
            label="Denied: addresses and blocks, one on a line"
            placeholder="0.0.0.0/0"
            onChange={deny => onChange({ deny })}
          />
          <Pairs
            label="Volumes, each as path=name"
            placeholder="/data=shared"
            onChange={volumes => onChange({ volumes })}
          />
        </div>
      </details>
      <Check
        label="Pause instead of kill when the time is over"
        checked={wish.pauseAtEnd}
        onChange={pauseAtEnd => onChange({ pauseAtEnd })}
      />
    </>
  );
}

type CheckProps = { label: string; checked: boolean; onChange: (checked: boolean) => void };

function Check({ label, checked, onChange }: CheckProps) {
  return (
    <label className="check">
      <input type="checkbox" checked={checked} onChange={event => onChange(event.target.checked)} />
      {label}
    </label>
  );
}

type LinesProps = { label: string; placeholder: string; onChange: (lines: string[]) => void };

function Lines({ label, placeholder, onChange }: LinesProps) {
  return (
    <label className="field">
      <span>{label}</span>
      <textarea rows={2} placeholder={placeholder} onChange={event => onChange(parseLines(event.target.value))} />
    </label>
  );
}

function TemplateField({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  const templates = useRead<Template[]>('/templates');
  const names = (templates.data ?? []).map(({ names, templateID }) => names[0] ?? templateID);
  return (
    <label className="field">
      <span>Template</span>
      <input list="templates" required value={value} onChange={event => onChange(event.target.value)} />
      <datalist id="templates">
        {names.map(name => (
          <option key={name} value={name} />
        ))}
      </datalist>
    </label>
  );
}

type PairsProps = { label: string; placeholder: string; onChange: (pairs: Record<string, string>) => void };

function Pairs({ label, placeholder, onChange }: PairsProps) {
  return (
    <label className="field">
      <span>{label}</span>
      <textarea
        rows={2}
        placeholder={placeholder}
        onChange={event => {
          const pairs = parsePairs(event.target.value);
          event.target.setCustomValidity(pairs ? '' : 'One name=value on each line');
          if (pairs) onChange(pairs);
        }}
      />
    </label>
  );
}
