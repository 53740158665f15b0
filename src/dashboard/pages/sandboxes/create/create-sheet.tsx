import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { Sandbox } from '../../../../protocol/api/sandbox.ts';
import type { Template } from '../../../../protocol/api/template.ts';
import { useChange, useRead } from '../../../api/hooks.ts';
import { Dialog, DialogFooter } from '../../../parts/dialog.tsx';
import { bodyOf, plainWish } from './code.ts';
import type { Wish } from './code.ts';
import { CodeEditor } from './code-editor.tsx';
import { Check, Lines, Pairs } from './fields.tsx';
import { RuleRows } from './rule-rows.tsx';

/** Creates a sandbox, through a form or the equivalent code: a change of one shows in the other. */
export function CreateSheet({ template, onClose }: { template: string; onClose: () => void }) {
  const navigate = useNavigate();
  const [wish, setWish] = useState<Wish>({ ...plainWish, template });
  /** How often the code has changed the form; the fields then start over. */
  const [read, setRead] = useState(0);
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
        <div className="stack" style={{ gap: 12 }} key={read}>
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
          <Pairs
            label="Metadata"
            placeholder="user=ada"
            initial={wish.metadata}
            onChange={metadata => change({ metadata })}
          />
          <Pairs label="Environment" placeholder="NODE_ENV=test" initial={wish.env} onChange={env => change({ env })} />
          <Reach wish={wish} onChange={change} />
        </div>
        <CodeEditor
          wish={wish}
          onRead={next => {
            setWish(next);
            setRead(read + 1);
          }}
        />
      </div>
      <DialogFooter action={create.isPending ? 'Creating…' : 'Create'} busy={create.isPending} onClose={onClose} />
    </Dialog>
  );
}

type ReachProps = { wish: Wish; onChange: (next: Partial<Wish>) => void };

/** What the sandbox may reach, what it mounts, and what happens to it at the end. */
function Reach({ wish, onChange }: ReachProps) {
  const hasMore = bodyOf({ ...plainWish, ...pickMore(wish) })['network'] !== undefined || hasMembers(wish.volumes);
  return (
    <>
      <Check label="May reach the internet" checked={wish.internet} onChange={internet => onChange({ internet })} />
      <details open={hasMore || undefined}>
        <summary>Network and volumes</summary>
        <div className="stack" style={{ gap: 12, paddingTop: 10 }}>
          <Lines
            label="Allowed: addresses, blocks and domains, one on a line"
            placeholder="*.npmjs.org"
            initial={wish.allow}
            onChange={allow => onChange({ allow })}
          />
          <Lines
            label="Denied: addresses and blocks, one on a line"
            placeholder="0.0.0.0/0"
            initial={wish.deny}
            onChange={deny => onChange({ deny })}
          />
          <RuleRows initial={wish.rules} onChange={rules => onChange({ rules })} />
          <Pairs
            label="Volumes, each as path=name"
            placeholder="/data=shared"
            initial={wish.volumes}
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

const pickMore = ({ allow, deny, rules }: Wish) => ({ allow, deny, rules });
const hasMembers = (record: Record<string, string>) => Object.keys(record).length > 0;

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
