import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The dashboard addresses in the text of a program, below its host. `${…}` is an ID. */
export function addressesIn(text: string): string[] {
  const ofHost = [...text.matchAll(/e2b\.dev(\/dashboard[A-Za-z0-9/?=_-]*)/g)].map(([, path = '']) => path);
  const ofSandbox = [...text.matchAll(/(inspect\/sandbox)\/\$\{/g)].map(([, path]) => `/dashboard/${path}/{sandbox}`);
  return [...ofHost, ...ofSandbox];
}

/** The text of all files of a folder with this path suffix. */
export const textOf = (folder: string, end: RegExp): string =>
  readdirSync(folder, { recursive: true })
    .map(String)
    .filter(file => end.test(file) && !file.includes('node_modules'))
    .map(file => readFileSync(join(folder, file), 'utf8'))
    .join('\n');

/** Where each address that a published client prints leads: the heading of the page. */
export const leads: Record<string, string> = {
  '/dashboard?tab=keys': 'API keys',
  '/dashboard?tab=general': 'Operator',
  '/dashboard': 'Sandboxes',
  '/dashboard/inspect/sandbox/{sandbox}': 'base',
};
