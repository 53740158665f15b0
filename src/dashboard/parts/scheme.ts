import { useSyncExternalStore } from 'react';

const darkQuery = '(prefers-color-scheme: dark)';

/** Calls `changed` when the page's colours change, through the machine's theme or the chosen one. */
function subscribe(changed: () => void): () => void {
  const query = matchMedia(darkQuery);
  const observer = new MutationObserver(changed);
  query.addEventListener('change', changed);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme'] });
  return () => {
    query.removeEventListener('change', changed);
    observer.disconnect();
  };
}

/** The page's current colours, for what is drawn rather than styled. */
export function useScheme(): string {
  return useSyncExternalStore(
    subscribe,
    () => document.documentElement.dataset['theme'] ?? (matchMedia(darkQuery).matches ? 'dark' : 'light'),
  );
}
