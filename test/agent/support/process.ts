import { stream, type Headers, type RpcError, type RpcStream, type Target } from './rpc.ts';

type End = { exitCode?: number; exited?: boolean; status: string; error?: string };
export type ProcessEvent = {
  event: {
    start?: { pid: number; replayed?: number };
    data?: { stdout?: string; stderr?: string; pty?: string };
    end?: End;
    keepalive?: object;
  };
};

type StartRequest = {
  process: { cmd: string; args?: string[]; envs?: Record<string, string>; cwd?: string };
  pty?: { size: { cols: number; rows: number } };
  tag?: string;
  stdin?: boolean;
};

type Finished = {
  pid: number;
  stdout: string;
  stderr: string;
  pty: string;
  end: End | undefined;
  error: RpcError | undefined;
  order: string[];
};

export function start(target: Target, request: StartRequest, headers: Headers = {}): Promise<RpcStream<ProcessEvent>> {
  return stream(target, 'process.Process/Start', { stdin: false, ...request }, headers);
}

export function attach(
  target: Target,
  selector: { pid: number } | { tag: string },
  headers: Headers = {},
): Promise<RpcStream<ProcessEvent>> {
  return stream(target, 'process.Process/Connect', { process: selector }, headers);
}

/** Starts a process and reads everything that it does. */
export async function run(
  target: Target,
  cmd: string,
  args: string[] = [],
  more: Partial<StartRequest> & { headers?: Headers } = {},
): Promise<Finished> {
  const { headers, process, ...rest } = more;
  return finish(await start(target, { process: { cmd, args, ...process }, ...rest }, headers));
}

/** Runs a shell line. */
export const shell = (
  target: Target,
  line: string,
  more: Partial<StartRequest> & { headers?: Headers } = {},
): Promise<Finished> => run(target, '/bin/sh', ['-c', line], more);

/** Reads a stream to its end. `order` has the kinds of its events, without keepalives and with repeated ones once. */
export async function finish(events: RpcStream<ProcessEvent>): Promise<Finished> {
  const outputs = { stdout: [] as Buffer[], stderr: [] as Buffer[], pty: [] as Buffer[] };
  const order: string[] = [];
  let pid = 0;
  let end: End | undefined;
  for (let message = await events.next(); message; message = await events.next()) {
    const { start: started, data, end: ended, keepalive } = message.event;
    const kind = started ? 'start' : data ? 'data' : ended ? 'end' : 'keepalive';
    if (!keepalive && order.at(-1) !== kind) order.push(kind);
    if (started) pid = started.pid;
    if (ended) end = ended;
    for (const name of ['stdout', 'stderr', 'pty'] as const)
      if (data?.[name] !== undefined) outputs[name].push(Buffer.from(data[name], 'base64'));
  }
  const text = (name: keyof typeof outputs) => Buffer.concat(outputs[name]).toString();
  return { pid, stdout: text('stdout'), stderr: text('stderr'), pty: text('pty'), end, error: events.error, order };
}

/** The PID in a stream's first event. */
export async function startedPid(events: RpcStream<ProcessEvent>): Promise<number> {
  const pid = (await events.next())?.event.start?.pid;
  if (pid === undefined) throw new Error(`the process did not start: ${JSON.stringify(events.error)}`);
  return pid;
}

/** Reads a stream until its output holds `text`. Answers all output so far. */
export async function outputUntil(events: RpcStream<ProcessEvent>, text: string): Promise<string> {
  let seen = '';
  while (!seen.includes(text)) {
    const message = await events.next();
    if (!message) throw new Error(`the stream ended without '${text}': ${seen}`);
    const { data } = message.event;
    seen += Buffer.from(data?.stdout ?? data?.stderr ?? data?.pty ?? '', 'base64').toString();
  }
  return seen;
}
