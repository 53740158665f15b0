import { useEffect, useEffectEvent, useRef } from 'react';

/** This near to the end of the rows, more are requested. */
const nearPx = 800;

type MoreProps = {
  isComing: boolean;
  /** Rows are being read again: a request made meanwhile would be dropped. */
  isBusy: boolean;
  onMore: () => void;
};

/** Requests more rows once the user scrolls near it, or clicks it. */
export function More({ isComing, isBusy, onMore }: MoreProps) {
  const button = useRef<HTMLButtonElement>(null);
  const more = useEffectEvent(onMore);
  useEffect(() => {
    if (isBusy || !button.current) return;
    const observer = new IntersectionObserver(([entry]) => void (entry?.isIntersecting && more()), {
      rootMargin: `${nearPx}px`,
    });
    observer.observe(button.current);
    return () => observer.disconnect();
  }, [isBusy]);
  return (
    <button ref={button} type="button" className="button tiny" disabled={isComing} onClick={onMore}>
      Show more
    </button>
  );
}
