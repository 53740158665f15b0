import { Trash2 } from 'lucide-react';
import { useState } from 'react';
import type { ReactNode } from 'react';
import type { Role } from '../../protocol/api/member.ts';
import { useChange } from '../api/hooks.ts';
import { useMay } from '../api/session.tsx';
import { Confirm } from './dialog.tsx';

type DeleteButtonProps = {
  /** What is deleted, as named in the question. */
  what: string;
  path: string;
  /** Paths whose answers are stale afterwards. */
  stale: string[];
  /** The button's label and action; default: Delete. */
  action?: string;
  personal?: boolean;
  /** The required role; default: none in a team. */
  least?: Role;
  children?: ReactNode;
};

/** Deletes an item of a list, after a question. */
export function DeleteButton({ what, path, stale, action = 'Delete', personal, least, children }: DeleteButtonProps) {
  const [asking, setAsking] = useState(false);
  const may = useMay(least ?? 'viewer');
  const remove = useChange('Done', stale, personal);
  return (
    <>
      <button
        type="button"
        className="button bare tiny danger"
        aria-label={`${action} ${what}`}
        disabled={!may}
        title={may ? undefined : `It takes the role ${least} in the team`}
        onClick={() => setAsking(true)}
      >
        <Trash2 size={14} /> {action}
      </button>
      {asking && (
        <Confirm
          title={`${action} ${what}?`}
          action={action}
          busy={remove.isPending}
          onClose={() => setAsking(false)}
          onConfirm={() => {
            setAsking(false);
            remove.mutate({ method: 'DELETE', path });
          }}
        >
          {children && <p className="muted">{children}</p>}
        </Confirm>
      )}
    </>
  );
}
