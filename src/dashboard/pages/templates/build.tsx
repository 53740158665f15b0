import { Link, useParams } from '@tanstack/react-router';
import { Ban } from 'lucide-react';
import { useEffect } from 'react';
import type { BuildInfo, BuildLogEntry } from '../../../protocol/api/template-build.ts';
import { useChange, useRead } from '../../api/hooks.ts';
import { useLogStream } from '../../api/log-stream.ts';
import { Badge, Problem } from '../../parts/bits.tsx';
import { LogBox } from '../../log/log-box.tsx';
import { Page } from '../../parts/page.tsx';
import { StepTable } from './step-table.tsx';
import { buildTone } from './build-tone.ts';
import { RoleButton } from '../../parts/role-button.tsx';

/** A build's log as it grows, each line with its step. */
export function BuildPage() {
  const { templateId = '', buildId = '' } = useParams({ strict: false });
  const path = `/templates/${encodeURIComponent(templateId)}/builds/${encodeURIComponent(buildId)}`;
  const log = useLogStream<BuildLogEntry>(`${path}/logs/stream`, {});
  const read = useRead<BuildInfo>(`${path}/status`, { query: { limit: 0 } });
  const { data: info, refetch } = read;
  // The log's beginning and end tell the build's state; in between, events of the team do.
  const hasEnded = log.end !== null;
  useEffect(() => void refetch(), [refetch, hasEnded]);
  const cancel = useChange('Cancelled', ['/templates']);
  const isOpen = info?.status === 'waiting' || info?.status === 'building';
  return (
    <Page
      title={`Build ${buildId.slice(0, 8)}`}
      about={
        <span className="row" style={{ marginTop: 4 }}>
          {info && <Badge tone={buildTone[info.status]}>{info.status}</Badge>}
          <Link to="/templates/$templateId" params={{ templateId }}>
            its template
          </Link>
        </span>
      }
      actions={
        isOpen && (
          <RoleButton
            least="developer"
            className="button danger"
            disabled={cancel.isPending}
            onClick={() => cancel.mutate({ method: 'POST', path: `${path}/cancel` })}
          >
            <Ban size={14} /> Cancel
          </RoleButton>
        )
      }
    >
      {read.error && <Problem error={read.error} />}
      {info?.reason && (
        <div className="note danger" role="alert">
          <span>
            {info.reason.step !== undefined && `Step ${info.reason.step}: `}
            {info.reason.message}
          </span>
        </div>
      )}
      <StepTable templateId={templateId} buildId={buildId} log={log} />
      <LogBox
        label="Log of the build"
        className="build"
        log={log}
        between={({ step }) => <span className="minor muted">{stepName(step)}</span>}
      />
    </Page>
  );
}

/** A step by its number, or by its name if it has one. */
const stepName = (step: string | undefined): string =>
  step === undefined ? '' : /^\d+$/.test(step) ? `step ${step}` : step;
