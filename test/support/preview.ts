import { request } from 'node:http';

/** The content of a preview URL, through the one port of the platform at `url`; undefined if the status is not 200. */
export function preview(url: string, host: string, path: string): Promise<string | undefined> {
  const { port } = new URL(url);
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers: { host } }, answer => {
      let text = '';
      answer.setEncoding('utf8').on('data', (part: string) => (text += part));
      answer.on('end', () => resolve(answer.statusCode === 200 ? text : undefined));
    })
      .on('error', reject)
      .end();
  });
}
