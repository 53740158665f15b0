import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { ask } from '../../api/client.ts';
import { useTeam } from '../../api/session.tsx';
import { formatClock } from '../../format.ts';
import { Empty, Loading, Problem } from '../../parts/bits.tsx';
import { formText } from '../../parts/form-text.ts';
import { useSandbox } from './sandbox.tsx';
import type { LogEntry } from './log-tail.ts';
import { LogTail } from './log-tail.ts';

const levels = ['debug', 'info', 'warn', 'error'] as const;
const everyMs = 1_000;
/** How near the end one must be to be taken along, pixels. */
const followPixels = 40;

/** What the URL says of the logs page. */
type LogsSearch = { level?: (typeof levels)[number]; find?: string };

/** Reads the search of a URL that anybody may have written. */
export function readLogsSearch(raw: Record<string, unknown>): LogsSearch {
  const level = levels.find(one => one === raw['level']);
  const { find } = raw;
  return { ...(level && { level }), ...(typeof find === 'string' && find !== '' && { find }) };
}

/** What happened in a sandbox, as it happens; also after its end. */
export function Logs() {
  const { sandboxId, detail } = useSandbox();
  const { level, find }: LogsSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const change = (next: Partial<Record<keyof LogsSearch, string | undefined>>) =>
    void navigate({ to: '.', search: { level, find, ...next } as LogsSearch, replace: true });
  const { entries, error } = useTail(sandboxId, level, find, detail?.state === 'running');
  return (
    <div className="stack" style={{ gap: 8 }}>
      <form
        className="row"
        onSubmit={event => {
          event.preventDefault();
          change({ find: formText(event.currentTarget, 'find') });
        }}
      >
        <select
          aria-label="From which level on"
          value={level ?? ''}
          onChange={event => change({ level: event.target.value || undefined })}
        >
          <option value="">All levels</option>
          {levels.slice(1).map(name => (
            <option key={name} value={name}>
              {name} and above
            </option>
          ))}
        </select>
        <input name="find" aria-label="Text in the message" placeholder="Text in the message" defaultValue={find} />
        <button className="button">Find</button>
      </form>
      {error && <Problem error={error} />}
      {entries === null ? error ? null : <Loading /> : <Lines entries={entries} />}
    </div>
  );
}

function Lines({ entries }: { entries: LogEntry[] }) {
  const box = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    if (follows.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [entries]);
  if (entries.length === 0)
    return (
      <div className="table-wrap">
        <Empty title="Nothing was logged" />
      </div>
    );
  return (
    <div
      className="log"
      ref={box}
      tabIndex={0}
      role="log"
      aria-label="Log"
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        follows.current = scrollHeight - scrollTop - clientHeight < followPixels;
      }}
    >
      <ol>
        {entries.map(({ timestamp, level, message, fields }, index) => (
          <li key={`${timestamp} ${index}`}>
            <time className="muted" dateTime={timestamp} title={timestamp}>
              {formatClock(new Date(timestamp))}
            </time>
            <span className={`minor ${level}`}>{level}</span>
            <span className="minor muted cut">{fields['logger']}</span>
            <span className={`text ${level}`}>{message}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** The end of a log, read on while the sandbox runs. */
function useTail(sandboxId: string, level: string | undefined, search: string | undefined, live: boolean) {
  const { teamID } = useTeam();
  const [entries, setEntries] = useState<LogEntry[] | null>(null);
  const [error, setError] = useState<Error | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    const tail = new LogTail(async query => {
      const path = `/v2/sandboxes/${encodeURIComponent(sandboxId)}/logs`;
      const response = await ask(path, { team: teamID, query: { ...query, level, search }, signal: stop.signal });
      return ((await response.json()) as { logs: LogEntry[] }).logs;
    });
    const run = async () => {
      do {
        try {
          const changed = await tail.read();
          if (changed) setEntries(tail.entries);
          setError(null);
        } catch (failure) {
          if (stop.signal.aborted) return;
          setError(failure as Error);
        }
        await new Promise(resolve => setTimeout(resolve, everyMs));
      } while (live && !stop.signal.aborted);
    };
    void run();
    return () => stop.abort();
  }, [sandboxId, teamID, level, search, live]);
  return { entries, error };
}
