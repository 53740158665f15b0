import { Check, CircleAlert, LoaderCircle } from 'lucide-react';
import { createContext, useContext, useEffect, useState } from 'react';
import type { ReactNode } from 'react';
import { formatAgo } from '../../base/duration.ts';
import { formatMoment } from '../format.ts';
import { leadOf } from './clock-lead.ts';
import { useZone } from './zone.tsx';

/** How far the platform's clock is ahead of this machine's, ms. */
const Lead = createContext(0);

/** How far the platform's clock is ahead of this machine's, ms: for code that needs the time when it runs. */
export const useClockLead = (): number => useContext(Lead);

/** This machine's time, renewed at this interval. */
function useTick(everyMs: number): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** The present time on the platform's clock, renewed at this interval. */
export const useTimer = (everyMs: number): number => useTick(everyMs) + useClockLead();

const Now = createContext(0);

/** Asks the platform for its time, because all times shown are the platform's. */
function useAskedLead(): number {
  const [lead, setLead] = useState(0);
  useEffect(() => {
    const askedMs = Date.now();
    void fetch('/health', { cache: 'no-store' }).then(
      ({ headers }) => setLead(leadOf(headers.get('date'), askedMs, Date.now())),
      // Without an answer there is no time.
      () => undefined,
    );
  }, []);
  return lead;
}

/** Provides the platform's time to everything inside, each second: one timer, however many times a page shows. */
export function Clock({ children }: { children: ReactNode }) {
  const lead = useAskedLead();
  return (
    <Lead value={lead}>
      <Now value={useTick(1000) + lead}>{children}</Now>
    </Lead>
  );
}

/** The present time, renewed each second. */
export const useNow = (): number => useContext(Now);

/** A time as its distance from now; hovering shows it in full. */
export function Ago({ at }: { at: string | null | undefined }) {
  const now = useNow();
  const zone = useZone();
  if (!at) return <span className="muted">never</span>;
  const moment = new Date(at);
  return (
    <time dateTime={at} title={formatMoment(moment, zone)} className="num">
      {formatAgo(now - moment.getTime())}
    </time>
  );
}

/** Copies a text, and shows for a while that it did. */
function useCopy(text: string): { copied: boolean; copy: () => void } {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return { copied, copy: () => void copy() };
}

/** A style draws the copy icon: lists have hundreds of them, and few are ever looked at. */
const CopySign = ({ copied }: { copied: boolean }) =>
  copied ? <Check size={13} aria-label="Copied" /> : <span className="copy-sign" />;

/** Text that a click copies. `children` is what is shown of it, if not the whole; an empty text has no button. */
export function Copy({ text, children }: { text: string; children?: ReactNode }) {
  const { copied, copy } = useCopy(text);
  return (
    <button type="button" className="copy" title={`Copy ${text}`} onClick={copy}>
      {children ?? <span className="mono">{text}</span>}
      <CopySign copied={copied} />
    </button>
  );
}

/** A user-given name in a table: cut if it is long, and whole on hovering. */
export const Name = ({ text, className = '' }: { text: string; className?: string }) => (
  <span className={`cut name ${className}`} title={text}>
    {text}
  </span>
);

/** Copies a text that is shown beside the button and does something else when pressed. */
export function CopyBeside({ text }: { text: string }) {
  const { copied, copy } = useCopy(text);
  return (
    <button type="button" className="copy" aria-label={`Copy ${text}`} title={`Copy ${text}`} onClick={copy}>
      <CopySign copied={copied} />
    </button>
  );
}

/** How good or bad a state is, which determines its colour. */
export type Tone = 'ok' | 'warn' | 'danger' | 'idle';

/** A state in one word, with its colour. */
export function Badge({ tone, children }: { tone: Tone; children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>;
}

type MeterProps = {
  share: number;
  label: string;
  wide?: boolean;
  /** A low value is the alarming one, not a high one. */
  left?: boolean;
  /** No value is alarming. */
  plain?: boolean;
};

/** How much of something is used, as a bar. `label` says it in words for screen readers. */
export function Meter({ share, label, wide, left, plain }: MeterProps) {
  const taken = Math.min(1, Math.max(0, share));
  const pressing = plain ? 0 : left ? 1 - taken : taken;
  const tone = pressing > 0.9 ? 'danger' : pressing > 0.75 ? 'warn' : '';
  return (
    <span className={`meter ${tone} ${wide ? 'wide' : ''}`} role="img" aria-label={label} title={label}>
      <span style={{ width: `${taken * 100}%` }} />
    </span>
  );
}

/** How much of something is used, as a bar beside its words. */
export function Taken({ share, text }: { share: number; text: string }) {
  return (
    <span className="row num" style={{ gap: 6, flexWrap: 'nowrap', whiteSpace: 'nowrap' }}>
      <Meter share={share} label={text} /> {text}
    </span>
  );
}

/** Shown where there is nothing. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** An error in the API's own words. */
export function Problem({ error, onRetry }: { error: Error; onRetry?: () => void }) {
  return (
    <div className="note danger" role="alert">
      <CircleAlert size={16} />
      <span className="grow">{error.message}</span>
      {onRetry && (
        <button type="button" className="button tiny" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Shown while something is loading. */
export function Loading() {
  return (
    <div className="empty" role="status">
      <LoaderCircle className="spin" size={18} aria-label="Loading" />
    </div>
  );
}
