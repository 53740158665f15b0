import type { Route } from '../route.ts';

/**
 * Whole files over plain HTTP. Uploads and downloads check access themselves, because URLs can be signed. Their code is
 * loaded at the first use: many sandboxes never need it.
 */
export function fileRoutes(): [methodAndPath: string, route: Route][] {
  return [
    ['GET /files', { open: true, answer: async (...call) => (await import('./download.ts')).download(...call) }],
    ['POST /files', { open: true, answer: async (...call) => (await import('./upload.ts')).upload(...call) }],
    [
      'POST /files/compose',
      { answer: async (agent, request) => (await import('./compose.ts')).compose(agent, request) },
    ],
  ];
}
