import { Link, useParams } from '@tanstack/react-router';
import { Ban } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import type { BuildInfo, BuildLogEntry } from '../../../protocol/api/template-build.ts';
import { askJson } from '../../api/client.ts';
import { useChange } from '../../api/hooks.ts';
import { useTeam } from '../../api/session.tsx';
import { formatClock } from '../../format.ts';
import { Badge, Empty, Loading, Problem } from '../../parts/bits.tsx';
import { Page } from '../../parts/page.tsx';
import { buildTone } from './build-tone.ts';

const everyMs = 1_000;
const pageMax = 100;

/** A build's log as it grows, each line with its step. */
export function BuildPage() {
  const { templateId = '', buildId = '' } = useParams({ strict: false });
  const path = `/templates/${encodeURIComponent(templateId)}/builds/${encodeURIComponent(buildId)}`;
  const { info, entries, error } = useBuild(path);
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
          <button
            type="button"
            className="button danger"
            disabled={cancel.isPending}
            onClick={() => cancel.mutate({ method: 'POST', path: `${path}/cancel` })}
          >
            <Ban size={14} /> Cancel
          </button>
        )
      }
    >
      {error && <Problem error={error} />}
      {info?.reason && (
        <div className="note danger" role="alert">
          <span>
            {info.reason.step !== undefined && `Step ${info.reason.step}: `}
            {info.reason.message}
          </span>
        </div>
      )}
      {!info ? error ? null : <Loading /> : <BuildLog entries={entries} />}
    </Page>
  );
}

function BuildLog({ entries }: { entries: BuildLogEntry[] }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [entries]);
  if (entries.length === 0)
    return (
      <div className="table-wrap">
        <Empty title="Nothing was logged" />
      </div>
    );
  return (
    <div className="log build" ref={box} tabIndex={0} role="log" aria-label="Log of the build">
      <ol>
        {entries.map(({ timestamp, level, message, step }, index) => (
          <li key={`${timestamp} ${index}`}>
            <time className="muted" dateTime={timestamp}>
              {formatClock(new Date(timestamp))}
            </time>
            <span className="minor muted">{step === undefined ? '' : /^\d+$/.test(step) ? `step ${step}` : step}</span>
            <span className={`text ${level}`}>{message}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** What is known of a build, asked again until it has ended. */
function useBuild(path: string) {
  const { teamID } = useTeam();
  const [info, setInfo] = useState<BuildInfo | null>(null);
  const [entries, setEntries] = useState<BuildLogEntry[]>([]);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    const all: BuildLogEntry[] = [];
    const run = async () => {
      while (!stop.signal.aborted) {
        try {
          const query = { logsOffset: all.length, limit: pageMax };
          const next = await askJson<BuildInfo>(`${path}/status`, { team: teamID, query, signal: stop.signal });
          all.push(...next.logEntries);
          setInfo(next);
          setError(null);
          if (next.logEntries.length > 0) setEntries([...all]);
          if (next.logEntries.length === pageMax) continue;
          if (next.status === 'ready' || next.status === 'error') return;
        } catch (failure) {
          if (stop.signal.aborted) return;
          setError(failure as Error);
        }
        await new Promise(resolve => setTimeout(resolve, everyMs));
      }
    };
    void run();
    return () => stop.abort();
  }, [path, teamID]);
  return { info, entries, error };
}
