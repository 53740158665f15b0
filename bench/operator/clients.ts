import { load, type Load } from './load.ts';

/** What clients request from an API repeatedly: the `paths` in rotation. */
type Asked = { socketPath: string; key: string; paths: string[]; clients: number; seconds: number };

/** The same from a separate process: what clients do with an answer is no work of the API's. */
export async function loadFromOutside(asked: Asked): Promise<Load> {
  const child = Bun.spawn([process.execPath, import.meta.path], {
    stdin: Buffer.from(JSON.stringify(asked)),
    stdout: 'pipe',
  });
  return (await new Response(child.stdout).json()) as Load;
}

async function ask({ socketPath, key, paths, clients, seconds }: Asked): Promise<Load> {
  return load(clients, seconds, async () => {
    const path = paths[Math.floor(Math.random() * paths.length)];
    const response = await fetch(`http://api${path}`, { unix: socketPath, headers: { 'x-api-key': key } });
    if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
    await response.arrayBuffer();
  });
}

if (import.meta.main) process.stdout.write(JSON.stringify(await ask(await Bun.stdin.json())));
