/** In the session storage, which no other origin and no other tab reads. */
const key = 'atoll.return';

/** Pages for who is not signed in: nobody returns to them. */
const entrances = ['/dashboard/signin', '/dashboard/join'];

/** A path of the dashboard, as it is; null for anything else, whoever wrote it. */
export function pathWithin(text: string | null, origin: string): string | null {
  if (text === null || !text.startsWith('/') || !URL.canParse(text, origin)) return null;
  const url = new URL(text, origin);
  const isPage = url.origin === origin && url.pathname.startsWith('/dashboard/') && !entrances.includes(url.pathname);
  return isPage ? url.pathname + url.search : null;
}

/** Keeps where this tab is, for when somebody has signed in. Fragments have codes in them, and go. */
export const keepReturn = (): void => sessionStorage.setItem(key, location.pathname + location.search);

/** Forgets where this tab was: somebody has left on purpose. */
export const forgetReturn = (): void => sessionStorage.removeItem(key);

/** Where this tab was, which is forgotten; null where it was nowhere. */
export function takeReturn(): string | null {
  const path = pathWithin(sessionStorage.getItem(key), location.origin);
  forgetReturn();
  return path;
}
