import { useNavigate, useSearch } from '@tanstack/react-router';
import type { SandboxLogEntry } from '../../../protocol/api/sandbox-logs.ts';
import { useLogStream } from '../../api/log-stream.ts';
import { Badge } from '../../parts/bits.tsx';
import { formText } from '../../parts/form-text.ts';
import { LogBox } from '../../parts/log-box.tsx';
import { useSandbox } from './sandbox.tsx';

const levels = ['debug', 'info', 'warn', 'error'] as const;
/** Entries of what was logged before one looks. */
const tail = 1_000;

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
  const { sandboxId } = useSandbox();
  const { level, find }: LogsSearch = useSearch({ strict: false });
  const navigate = useNavigate();
  const change = (next: Partial<Record<keyof LogsSearch, string | undefined>>) =>
    void navigate({ to: '.', search: { level, find, ...next } as LogsSearch, replace: true });
  const log = useLogStream<SandboxLogEntry>(`/sandboxes/${encodeURIComponent(sandboxId)}/logs/stream`, {
    tail,
    level,
    search: find,
  });
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
        <Badge tone={log.isLive ? 'ok' : 'idle'}>{log.isLive ? 'live' : log.end ? 'ended' : 'not connected'}</Badge>
      </form>
      <LogBox
        label="Log"
        log={log}
        between={({ level, fields }) => (
          <>
            <span className={`minor ${level}`}>{level}</span>
            <span className="minor muted cut">{fields['logger']}</span>
          </>
        )}
      />
    </div>
  );
}
