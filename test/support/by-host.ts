import { request } from 'node:http';

/** A GET to the platform's port with the given Host header, as a browser would send it for a sandbox's host. */
export function getByHost(platformUrl: string, host: string, path: string): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(platformUrl);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, headers: { Host: host } }, response => {
      let body = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        body += part;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
      response.on('error', reject);
    });
    sent.on('error', reject).end();
  });
}
