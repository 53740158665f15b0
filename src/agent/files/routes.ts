import type { Route } from '../route.ts';
import { compose } from './compose.ts';
import { download } from './download.ts';
import { upload } from './upload.ts';

/** Whole files over plain HTTP. Uploads and downloads check access themselves: URLs can be signed. */
export function fileRoutes(): [methodAndPath: string, route: Route][] {
  return [
    ['GET /files', { open: true, answer: download }],
    ['POST /files', { open: true, answer: upload }],
    ['POST /files/compose', { answer: compose }],
  ];
}
