import { useSyncExternalStore } from 'react';

const darkQuery = '(prefers-color-scheme: dark)';

/** Calls `changed` when the page gets other colours: by the machine's theme, or by the one that is chosen. */
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

/** The colours that the page has now, for what is drawn and not styled. */
export function useScheme(): string {
  return useSyncExternalStore(
    subscribe,
    () => document.documentElement.dataset['theme'] ?? (matchMedia(darkQuery).matches ? 'dark' : 'light'),
  );
}
