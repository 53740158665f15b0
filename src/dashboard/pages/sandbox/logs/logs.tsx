import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { Download, Link2 } from 'lucide-react';
import { useEffect, useMemo, useState } from 'react';
import type { SandboxLogEntry } from '../../../../protocol/api/sandbox-logs.ts';
import { sandboxLogLevels, sandboxLoggers } from '../../../../protocol/logs.ts';
import { shownMax, useLogStream } from '../../../api/log-stream.ts';
import type { LogStream } from '../../../api/log-stream.ts';
import { useTeam } from '../../../api/session.tsx';
import { formatCount } from '../../../format.ts';
import { Badge } from '../../../parts/bits.tsx';
import { keepText } from '../../../parts/keep-text.ts';
import { LogBox } from '../../../log/log-box.tsx';
import { useToast } from '../../../parts/toasts.tsx';
import { useSandbox } from '../sandbox.tsx';
import { around } from './around.ts';
import { arounds, patternOf } from './logs-search.ts';
import type { LogsSearch } from './logs-search.ts';
import { wholeLog, wholeLogEntriesMax } from './whole-log.ts';

/** Entries shown of what was logged before the page was opened. */
const tail = 1_000;
/** How much is shown before the linked entry, ms. */
const beforeMs = 60_000;

type Change = (next: Partial<Record<keyof LogsSearch, string | number | boolean | undefined>>) => void;

/** What happens in a sandbox, live; also available after its end. */
export function Logs() {
  const { sandboxId } = useSandbox();
  const search: LogsSearch = useSearch({ strict: false });
  const { level, logger, find, regex, around: count, at } = search;
  const navigate = useNavigate();
  const change: Change = next =>
    void navigate({ to: '.', search: { ...search, ...next } as LogsSearch, replace: true });
  // To show entries around a hit, they must arrive too: then the search happens here.
  const isHere = find !== undefined && (regex || count !== undefined);
  const filter = { level, logger, search: isHere ? undefined : find };
  const log = useLogStream<SandboxLogEntry>(
    `/sandboxes/${encodeURIComponent(sandboxId)}/logs/stream`,
    at === undefined ? { tail, ...filter } : { after: String(Math.max(0, at - beforeMs)), ...filter },
    at === undefined ? 'newest' : 'oldest',
  );
  // Expressions run in the browser: one that takes for ever costs its author's time.
  const pattern = useMemo(() => (isHere ? patternOf(find, !regex) : null), [isHere, regex, find]);
  const matches = ({ message }: SandboxLogEntry) => pattern === null || pattern.test(message);
  const { entries: all } = log;
  const { shown: entries, hits } = useMemo(
    () =>
      pattern && all ? around(all, ({ message }) => pattern.test(message), count ?? 0) : { shown: all, hits: null },
    [all, pattern, count],
  );
  return (
    <div className="stack" style={{ gap: 8 }}>
      <div className="row">
        <Filters search={search} onChange={change} />
        <Shown search={search} onChange={change} />
        <span className="row" style={{ marginInlineStart: 'auto', flexWrap: 'nowrap' }}>
          <Badge tone={log.isLive ? 'ok' : 'idle'}>{log.isLive ? 'live' : log.end ? 'ended' : 'not connected'}</Badge>
          {at !== undefined && (
            <button type="button" className="button" onClick={() => change({ at: undefined })}>
              To what is logged now
            </button>
          )}
          <DownloadButton sandboxId={sandboxId} filter={filter} matches={matches} />
        </span>
      </div>
      <LogBox
        label="Log"
        className={search.wrap === false ? 'cut-lines' : ''}
        log={{ ...log, entries }}
        before={at === undefined ? earlierOf(log) : undefined}
        after={at === undefined ? undefined : laterOf(log)}
        isBeside={entry => hits !== null && !hits.has(entry)}
        linked={at === undefined ? undefined : String(at)}
        between={({ level, fields, place }) => (
          <>
            <span className={`minor ${level}`}>{level}</span>
            <span className="minor muted cut">{fields['logger']}</span>
            <Link
              to="."
              search={{ ...search, at: Number(place) } as never}
              className="line-link"
              aria-label="Link to this line"
              title="Link to this line"
            >
              <Link2 size={13} aria-hidden />
            </Link>
          </>
        )}
      />
    </div>
  );
}

type Read = Pick<LogStream<unknown>, 'entries' | 'dropped'>;

/** The note for when there may be more before what is shown, or before what is searched. */
const earlierOf = ({ entries, dropped }: Read): string | undefined =>
  dropped + (entries?.length ?? 0) >= tail ? 'Earlier entries may not be shown here: the download has them' : undefined;

/** The same for the end: from a linked line on, no more is read than is shown. */
const laterOf = ({ entries }: Read): string | undefined =>
  (entries?.length ?? 0) >= shownMax
    ? `No more than ${formatCount(shownMax)} entries are shown from here on`
    : undefined;

function Filters({ search, onChange }: { search: LogsSearch; onChange: Change }) {
  const [text, setText] = useState(search.find ?? '');
  const [isPattern, setPattern] = useState(search.regex ?? false);
  useEffect(() => {
    setText(search.find ?? '');
    setPattern(search.regex ?? false);
  }, [search.find, search.regex]);
  const wrong = isPattern && patternOf(text) === null;
  return (
    <>
      <select
        aria-label="From which level on"
        value={search.level ?? ''}
        onChange={event => onChange({ level: event.target.value || undefined })}
      >
        <option value="">All levels</option>
        {sandboxLogLevels.slice(1).map(name => (
          <option key={name} value={name}>
            {name} and above
          </option>
        ))}
      </select>
      <select
        aria-label="About what"
        value={search.logger ?? ''}
        onChange={event => onChange({ logger: event.target.value || undefined })}
      >
        <option value="">About everything</option>
        {sandboxLoggers.map(name => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <form
        className="row"
        onSubmit={event => {
          event.preventDefault();
          if (!wrong) onChange({ find: text || undefined, regex: (isPattern && text !== '') || undefined });
        }}
      >
        <input
          type="search"
          aria-label="Text in the message"
          placeholder={isPattern ? 'exit|denied' : 'Text'}
          size={12}
          maxLength={256}
          aria-invalid={wrong}
          value={text}
          onChange={event => setText(event.target.value)}
        />
        <label className="check">
          <input type="checkbox" checked={isPattern} onChange={event => setPattern(event.target.checked)} />
          Expression
        </label>
        <button className="button" disabled={wrong} title={wrong ? 'That is no regular expression' : undefined}>
          Find
        </button>
      </form>
    </>
  );
}

/** How hits are shown: with their surroundings, and whether long messages wrap. */
function Shown({ search, onChange }: { search: LogsSearch; onChange: Change }) {
  return (
    <>
      {search.find !== undefined && (
        <select
          aria-label="With what is around it"
          value={search.around ?? ''}
          onChange={({ target: { value } }) => onChange({ around: value === '' ? undefined : Number(value) })}
        >
          <option value="">Hits alone</option>
          {arounds.map(count => (
            <option key={count} value={count}>
              {count} around
            </option>
          ))}
        </select>
      )}
      <label className="check">
        <input
          type="checkbox"
          checked={search.wrap !== false}
          onChange={event => onChange({ wrap: event.target.checked ? undefined : false })}
        />
        Wrap
      </label>
    </>
  );
}

type DownloadProps = {
  sandboxId: string;
  filter: Parameters<typeof wholeLog>[0]['filter'];
  matches: (entry: SandboxLogEntry) => boolean;
};

function DownloadButton({ sandboxId, filter, matches }: DownloadProps) {
  const { teamID } = useTeam();
  const toast = useToast();
  const [busy, setBusy] = useState(false);
  const download = async () => {
    setBusy(true);
    await wholeLog({ sandboxId, team: teamID, filter, matches }).then(
      ({ text, isCut }) => {
        keepText(`${sandboxId}.log`, text);
        if (isCut) toast({ kind: 'danger', text: `The file has the first ${formatCount(wholeLogEntriesMax)} entries` });
      },
      (error: Error) => toast({ kind: 'danger', text: error.message }),
    );
    setBusy(false);
  };
  return (
    <button
      type="button"
      className="button"
      aria-label="Download"
      title="Download all that matches"
      disabled={busy}
      onClick={() => void download()}
    >
      <Download size={14} />
    </button>
  );
}
