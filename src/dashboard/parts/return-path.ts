/** In the session storage, which no other origin and no other tab reads. */
const key = 'atoll.return';

/** Pages for users who are not signed in: nobody returns to them. */
const entrances = ['/dashboard/signin', '/dashboard/join'];

/** A path of the dashboard, unchanged; null for anything else, whoever wrote it. */
export function pathWithin(text: string | null, origin: string): string | null {
  if (text === null || !text.startsWith('/') || !URL.canParse(text, origin)) return null;
  const url = new URL(text, origin);
  const isPage = url.origin === origin && url.pathname.startsWith('/dashboard/') && !entrances.includes(url.pathname);
  return isPage ? url.pathname + url.search : null;
}

/** Saves where this tab is, for after the next sign-in. Fragments contain codes, so they are dropped. */
export const keepReturn = (): void => sessionStorage.setItem(key, location.pathname + location.search);

/** Forgets where this tab was: the user has left on purpose. */
export const forgetReturn = (): void => sessionStorage.removeItem(key);

/** Where this tab was, which is then forgotten; null if it was nowhere. */
export function takeReturn(): string | null {
  const path = pathWithin(sessionStorage.getItem(key), location.origin);
  forgetReturn();
  return path;
}
