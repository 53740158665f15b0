import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export const partNames = ['node', 'api', 'edge'] as const;
export type PartName = (typeof partNames)[number];

/** The processes of the parts that a supervisor watches; one that is just restarting is missing. */
export function partsOf(supervisor: number): Partial<Record<PartName, number>> {
  const parts: Partial<Record<PartName, number>> = {};
  for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
    const [, part] = /^(node|api|edge)$/.exec(commandOf(pid)) ?? [];
    if (part !== undefined && parentOf(pid) === supervisor) parts[part as PartName] = Number(pid);
  }
  return parts;
}

/** The process of one part. Throws if it does not run at the moment. */
export function partOf(supervisor: number, name: PartName): number {
  const pid = partsOf(supervisor)[name];
  if (pid === undefined) throw new Error(`no ${name} runs`);
  return pid;
}

/** A line of proc(5)'s status. */
export function statusOf(pid: number, name: string): string {
  return new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]?.trim() ?? '';
}

/** The files that a process has open. */
export function openFilesOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap(fd => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return []; // it was closed meanwhile
    }
  });
}

/** The other ends, as proc(5) writes them, of a process's TCP and UDP sockets that lead to another machine. */
export function remoteEndsOf(pid: number): string[] {
  const open = new Set(openFilesOf(pid).map(path => /^socket:\[(\d+)\]$/.exec(path)?.[1]));
  const here = /^(?:0{8}|0{32}|[0-9A-F]{6}7F|0{24}01000000|0{16}FFFF0000[0-9A-F]{6}7F):/;
  return ['tcp', 'tcp6', 'udp', 'udp6'].flatMap(kind =>
    readFileSync(`/proc/${pid}/net/${kind}`, 'latin1')
      .split('\n')
      .slice(1)
      .filter(line => line !== '')
      .map(line => line.trim().split(/\s+/))
      .filter(columns => open.has(columns[9]) && !here.test(columns[2] ?? ''))
      .map(columns => `${kind} ${columns[2]}`),
  );
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replace(/\0$/, '').split('\0').at(-1) ?? '';
  } catch {
    return '';
  }
}

function parentOf(pid: string): number {
  try {
    return Number(
      readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')[1],
    );
  } catch {
    return 0;
  }
}
