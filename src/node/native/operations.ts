import { AtollError } from '../../base/error.ts';

/**
 * The helper's operations, by name: how the arguments of each are written, and how its answer is read. What each one
 * does is described at its function in native/, where the arguments have the same names and order.
 */
type Operation<Args, Answer> = { write(args: Args): (string | number)[]; read(fields: string[]): Answer };

const answersNothing = () => {};

function operation<Args>(write: (args: Args) => (string | number)[]): Operation<Args, void>;
function operation<Args, Answer>(
  write: (args: Args) => (string | number)[],
  read: (fields: string[]) => Answer,
): Operation<Args, Answer>;
function operation<Args>(
  write: (args: Args) => (string | number)[],
  read: (fields: string[]) => unknown = answersNothing,
): Operation<Args, unknown> {
  return { write, read };
}

/** A program to start, with the directories of control groups to start it in. */
type Program = { timeoutMs: number; stdin: string; groups: readonly string[]; argv: readonly string[] };

/** An overlay for a sandbox: the first host ID of its users, the mount of its disk, and layers, lowest first. */
type Overlay = { baseId: number; disk: string; layers: readonly string[] };

/** One end of a link. Addresses as text, the link-layer address as `02:…`. */
type LinkEnd = { pid: number; address: string; mac: string };

/** Everything that the helper can do. Paths are those of its mount namespace. */
export const operations = {
  // native/helper.c
  spawn: operation(
    ({ timeoutMs, stdin, groups, argv }: Program) => [timeoutMs, stdin, groups.join(' '), ...argv],
    ([status = '', output = '']): SpawnResult => ({ status: numberIn(status), output }),
  ),
  start: operation(
    ({ tag, timeoutMs, stdin, groups, argv }: Program & { tag: string }) => [
      tag,
      timeoutMs,
      stdin,
      groups.join(' '),
      ...argv,
    ],
    ([status = '', output = '']): SpawnResult => ({ status: numberIn(status), output }),
  ),
  watch: operation(({ tag, pid }: { tag: string; pid: number }) => [tag, pid]),
  kill: operation(({ tag }: { tag: string }) => [tag]),
  seal: operation(({ name, path }: { name: string; path: string }) => [name, path]),
  // native/disk.c
  'disk-create': operation(({ from, to }: { from: string; to: string }) => [from, to]),
  'disk-mount': operation(
    ({ image, at, durable = false }: { image: string; at: string; durable?: boolean }) => [
      image,
      at,
      ...(durable ? ['durable'] : []),
    ],
    ([device = '']): { device: string } => ({ device }),
  ),
  'disk-used': operation(
    ({ image }: { image: string }) => [image],
    ([used]): { used: boolean } => ({ used: used === 'yes' }),
  ),
  'layer-mount': operation(({ image, at }: { image: string; at: string }) => ['erofs', image, at]),
  show: operation(({ directory, at }: { directory: string; at: string }) => [directory, at]),
  unmount: operation(({ at }: { at: string }) => [at]),
  // native/root.c
  'adopt-root': operation(
    ({ pid, baseId, disk, layers }: Overlay & { pid: number }) => [pid, baseId, disk, layers.length, ...layers],
    ([taken]): { taken: string | undefined } => ({ taken: taken || undefined }),
  ),
  bind: operation(
    ({ pid, baseId, source, target }: { pid: number; baseId: number; source: string; target: string }) => [
      pid,
      baseId,
      source,
      target,
    ],
  ),
  'size-shared-memory': operation(({ pid, bytes }: { pid: number; bytes: number }) => [pid, bytes]),
  'name-host': operation(({ pid, name }: { pid: number; name: string }) => [pid, name]),
  'overlay-mount': operation(({ baseId, at, disk, layers }: Overlay & { at: string }) => [
    baseId,
    at,
    disk,
    layers.length,
    ...layers,
  ]),
  'mapped-mount': operation(({ baseId, source, at }: { baseId: number; source: string; at: string }) => [
    baseId,
    source,
    at,
  ]),
  restrict: operation(
    ({ pid, mounts }: { pid: number; mounts: readonly { restrictions: string[]; point: string }[] }) => [
      pid,
      ...mounts.flatMap(({ restrictions, point }) => [restrictions.join(','), point]),
    ],
  ),
  // native/view.c
  view: operation(({ at, layers }: { at: string; layers: readonly string[] }) => [at, ...layers]),
  // native/link.c
  'link-up': operation(
    (link: {
      pid: number;
      name: string;
      slotAddress: string;
      innerAddress: string;
      gateway: string;
      outerMac: string;
      innerMac: string;
      mtu: number;
      /** Undefined: the link carries only IPv4. */
      ipv6?: { slotAddress: string; innerAddress: string; gateway: string };
    }) => [
      link.pid,
      link.name,
      link.slotAddress,
      link.innerAddress,
      link.gateway,
      link.outerMac,
      link.innerMac,
      link.mtu,
      ...(link.ipv6 ? [link.ipv6.slotAddress, link.ipv6.innerAddress, link.ipv6.gateway] : []),
    ],
  ),
  'access-up': operation(({ outer, inner, mtu }: { outer: LinkEnd; inner: LinkEnd; mtu: number }) => [
    outer.pid,
    inner.pid,
    outer.address,
    inner.address,
    outer.mac,
    inner.mac,
    mtu,
  ]),
  'link-down': operation(({ name }: { name: string }) => [name]),
};

/** How a program that the helper ran has ended. */
export type SpawnResult = {
  /** Exit status, or 128 + the signal's number. */
  status: number;
  /** The last 4 KiB of its output, with line ends as spaces. */
  output: string;
};

/** The name of an operation. */
export type OperationName = keyof typeof operations;
/** What an operation takes. */
export type ArgumentsOf<Name extends OperationName> = Parameters<(typeof operations)[Name]['write']>[0];
/** What it answers. */
export type AnswerOf<Name extends OperationName> = ReturnType<(typeof operations)[Name]['read']>;

function numberIn(field: string): number {
  const value = Number(field);
  if (field === '' || !Number.isInteger(value))
    throw new AtollError('internal', `the native helper answered ${JSON.stringify(field)} where a number must be`);
  return value;
}
