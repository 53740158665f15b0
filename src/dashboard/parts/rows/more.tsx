import { useEffect, useEffectEvent, useRef } from 'react';

/** So near to the end of the rows that there are, more are asked for. */
const nearPx = 800;

type MoreProps = {
  isComing: boolean;
  /** Rows are asked for anew: what is asked for meanwhile would not come. */
  isBusy: boolean;
  onMore: () => void;
};

/** Asks for more as soon as one scrolls near it, or clicks it. */
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
