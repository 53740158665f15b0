import { Play } from 'lucide-react';
import { useChange } from '../../api/hooks.ts';
import { useMay } from '../../api/session.tsx';
import { Empty } from '../../parts/bits.tsx';
import { resumeBody } from '../sandboxes/resume-body.ts';
import { useSandbox } from './sandbox.tsx';

/** Shown where something needs a running sandbox; offers to resume a paused one. */
export function NeedsRunning({ what }: { what: string }) {
  const { sandboxId, detail } = useSandbox();
  const resume = useChange('Resumed', ['/v2/sandboxes', '/sandboxes', '/events']);
  const may = useMay('developer');
  if (detail && !may)
    return (
      <div className="table-wrap">
        <Empty title="Not for viewers">
          <p>{what} takes the role developer in the team.</p>
        </Empty>
      </div>
    );
  return (
    <div className="table-wrap">
      {detail ? (
        <Empty title="It is paused">
          <p>{what} needs it running. Nothing wakes it until you say so.</p>
          <button
            type="button"
            className="button primary"
            disabled={resume.isPending}
            onClick={() =>
              resume.mutate({ method: 'POST', path: `/sandboxes/${sandboxId}/resume`, body: resumeBody(detail) })
            }
          >
            <Play size={14} /> Resume
          </button>
        </Empty>
      ) : (
        <Empty title="It has ended">
          <p>{what} went with it. Its logs are kept for a while.</p>
        </Empty>
      )}
    </div>
  );
}
