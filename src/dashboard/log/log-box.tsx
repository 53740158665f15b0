import { ArrowDown } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';
import type { ReactNode, RefObject } from 'react';
import type { LogStream } from '../api/log-stream.ts';
import { Empty, Loading, Problem } from '../parts/bits.tsx';
import { LogMessage } from './log-message.tsx';
import { TimeOfDay } from '../parts/zone.tsx';

/** How near the end the user must be for the log to keep scrolling, pixels. */
const followPixels = 40;

type Entry = { timestamp: string; level: string; message: string; place: string };
type LogBoxProps<T> = {
  label: string;
  className?: string;
  log: LogStream<T>;
  /** Stand before the first entry and after the last one: what is not shown. */
  before?: string | undefined;
  after?: string | undefined;
  /** The place of the linked entry: it is shown instead of the end. */
  linked?: string | undefined;
  /** The entry is shown only because it stands beside another one. */
  isBeside?: ((entry: T) => boolean) | undefined;
  /** What stands between the time and the message. */
  between: (entry: T) => ReactNode;
};

/** A growing log: its end stays in view until the user scrolls away from it. */
export function LogBox<T extends Entry>({
  label,
  className = '',
  log,
  before,
  after,
  linked,
  isBeside,
  between,
}: LogBoxProps<T>) {
  const { entries, error, dropped } = log;
  const box = useRef<HTMLDivElement>(null);
  /** How many entries there were when the user scrolled away; null while following. */
  const [leftAt, setLeftAt] = useState<number | null>(null);
  const target = useRef<HTMLLIElement>(null);
  const isThere = linked !== undefined && (entries?.some(({ place }) => place === linked) ?? false);
  useEffect(() => {
    if (isThere) target.current?.scrollIntoView({ block: 'center' });
  }, [isThere, linked]);
  const earlier = before ?? (dropped > 0 ? `${dropped} earlier entries are not shown` : undefined);
  const total = dropped + (entries?.length ?? 0);
  const toEnd = () => box.current?.scrollTo({ top: box.current.scrollHeight });
  useEffect(() => {
    if (leftAt === null && linked === undefined) toEnd();
  }, [entries, leftAt, linked]);
  if (entries === null) return error ? <Problem error={error} /> : <Loading />;
  return (
    <>
      {error && <Problem error={error} />}
      {entries.length === 0 ? (
        <div className="table-wrap">
          <Empty title="Nothing was logged" />
        </div>
      ) : (
        <div className="log-frame">
          <div
            className={`log ${className}`}
            ref={box}
            tabIndex={0}
            role="log"
            aria-label={label}
            onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
              const isAtEnd = scrollHeight - scrollTop - clientHeight < followPixels;
              setLeftAt(before => (isAtEnd ? null : (before ?? total)));
            }}
          >
            {earlier !== undefined && <p className="muted earlier">{earlier}</p>}
            <Entries {...{ entries, linked, target, isBeside, between }} />
            {after !== undefined && <p className="muted earlier">{after}</p>}
          </div>
          {leftAt !== null && (
            <button
              type="button"
              className="button to-end"
              onClick={() => (linked === undefined ? setLeftAt(null) : toEnd())}
            >
              <ArrowDown size={14} /> {total > leftAt ? `${total - leftAt} new` : 'To the end'}
            </button>
          )}
        </div>
      )}
    </>
  );
}

type EntriesProps<T extends Entry> = Pick<LogBoxProps<T>, 'linked' | 'isBeside' | 'between'> & {
  entries: readonly T[];
  /** Receives the linked entry. */
  target: RefObject<HTMLLIElement | null>;
};

function Entries<T extends Entry>({ entries, linked, target, isBeside, between }: EntriesProps<T>) {
  return (
    <ol>
      {entries.map(entry => (
        <li
          key={entry.place}
          className={isBeside?.(entry) ? 'beside' : undefined}
          ref={entry.place === linked ? target : undefined}
          aria-current={entry.place === linked || undefined}
        >
          <TimeOfDay className="muted" at={entry.timestamp} />
          {between(entry)}
          <LogMessage level={entry.level} text={entry.message} />
        </li>
      ))}
    </ol>
  );
}
