import { absentCalls, allowedCalls, conditionalCalls, newestKnownCall } from './calls.ts';

export type Architecture = 'x64' | 'arm64';

// struct sock_filter: u16 code, u8 jt, u8 jf, u32 k (linux/filter.h)
type Instruction = { code: number; jt: number; jf: number; k: number };

const LOAD = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JUMP_EQUAL = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_AT_LEAST = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const JUMP_ABOVE = 0x25; // BPF_JMP | BPF_JGT | BPF_K
const RETURN = 0x06; // BPF_RET | BPF_K

const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const refuse = (errno: number) => 0x00050000 | errno;
const EPERM = 1;
const ENOSYS = 38;
const EPROTONOSUPPORT = 93;
const EAFNOSUPPORT = 97;

// Offsets in struct seccomp_data (linux/seccomp.h); arguments are 64 bits, low word first.
const NUMBER = 0;
const ARCHITECTURE = 4;
const argument = (index: number) => 16 + index * 8;

const auditArchitecture = { x64: 0xc000003e, arm64: 0xc00000b7 } as const;
const X32_BIT = 0x40000000;

/** CLONE_NEWNS | NEWCGROUP | NEWUTS | NEWIPC | NEWUSER | NEWPID | NEWNET. NEWTIME shares its bit with the exit signal, so clone cannot ask for it. */
const namespaceFlags = 0x7e020000;
const AF_UNIX = 1;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_NETLINK = 16;
const SOCK_TYPE_MASK = 0xf;
/** With AF_INET this is AF_PACKET by another name. */
const SOCK_PACKET = 10;
/** Of AF_INET and AF_INET6: the default, ICMP, TCP, UDP, ICMPv6, raw. Any other may load a module of the host's kernel. */
const internetProtocols = [0, 1, 6, 17, 58, 255];
/** Of AF_NETLINK: NETLINK_ROUTE and NETLINK_SOCK_DIAG, by which programs list addresses, routes and sockets. */
const netlinkProtocols = [0, 4];
const RLIMIT_CORE = 4;
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
/** Linux, with or without ADDR_NO_RANDOMIZE; UNAME26; and the query. */
const harmlessPersonalities = [0x0, 0x40000, 0x20000, 0x60000, 0xffffffff];

/**
 * The seccomp filter of every sandbox as an array of `struct sock_filter`.
 * Made here and handed to the runtime ready-made: having the runtime compile a profile costs 15 to 28 ms a sandbox.
 */
export function seccompFilter(architecture: Architecture): Uint8Array {
  const column = architecture === 'x64' ? 0 : 1;
  const program: Instruction[] = [
    { code: LOAD, jt: 0, jf: 0, k: ARCHITECTURE },
    // A call through another architecture's entry would be judged by the wrong numbers.
    { code: JUMP_EQUAL, jt: 1, jf: 0, k: auditArchitecture[architecture] },
    { code: RETURN, jt: 0, jf: 0, k: KILL },
    { code: LOAD, jt: 0, jf: 0, k: NUMBER },
  ];
  if (architecture === 'x64') program.push(...when(JUMP_AT_LEAST, X32_BIT, [result(refuse(ENOSYS))]));
  program.push(...conditional(column));
  for (const [low, high] of ranges(Object.values(absentCalls).map(numbers => numbers[column]))) {
    program.push(...(low === high ? when(JUMP_EQUAL, low, [result(refuse(ENOSYS))]) : between(low, high, refuse(ENOSYS))));
  }
  for (const [low, high] of ranges(Object.values(allowedCalls).map(numbers => numbers[column]))) {
    program.push(...(low === high ? when(JUMP_EQUAL, low, [result(ALLOW)]) : between(low, high, ALLOW)));
  }
  program.push(...when(JUMP_ABOVE, newestKnownCall[architecture], [result(refuse(ENOSYS))]), result(refuse(EPERM)));
  return encode(program);
}

function conditional(column: 0 | 1): Instruction[] {
  const call = (name: keyof typeof conditionalCalls, body: Instruction[]) => when(JUMP_EQUAL, conditionalCalls[name][column], body);
  const low = (index: number): Instruction => ({ code: LOAD, jt: 0, jf: 0, k: argument(index) });
  const high = (index: number): Instruction => ({ code: LOAD, jt: 0, jf: 0, k: argument(index) + 4 });
  const whenNull = (index: number, body: Instruction[]) => [low(index), ...when(JUMP_EQUAL, 0, [high(index), ...when(JUMP_EQUAL, 0, body)])];
  const refused = result(refuse(EPERM));
  const allowed = result(ALLOW);
  return [
    ...call('clone', [low(0), { code: AND, jt: 0, jf: 0, k: namespaceFlags }, ...when(JUMP_EQUAL, 0, [allowed]), refused]),
    // A pair is made like two sockets, and refused by most families only then.
    ...call('socket', socketOf(low)),
    ...call('socketpair', socketOf(low)),
    ...call('personality', [low(0), ...harmlessPersonalities.flatMap(value => when(JUMP_EQUAL, value, [allowed])), refused]),
    // See `coreLimit` in drivers/crun/config.ts. A program that sets the limit, as sudo does, is told that it has.
    ...call('setrlimit', [low(0), ...when(JUMP_EQUAL, RLIMIT_CORE, [result(refuse(0))]), allowed]),
    ...call('prlimit64', [low(1), ...when(JUMP_EQUAL, RLIMIT_CORE, [...whenNull(2, [allowed]), ...whenNull(3, [result(refuse(0))]), refused]), allowed]),
    // Typing into a terminal that a process shares with someone more powerful.
    ...call('ioctl', [low(1), ...when(JUMP_EQUAL, TIOCSTI, [refused]), ...when(JUMP_EQUAL, TIOCLINUX, [refused]), allowed]),
  ];
}

/**
 * A sandbox has the socket families that programs need. Others are a kernel's least tested parts, and told to be missing: programs
 * that try one then do without. There is no AF_PACKET: with it, a sandbox forges frames on its link to the host.
 */
function socketOf(argumentAt: (index: number) => Instruction): Instruction[] {
  const among = (values: number[]) => [...values.flatMap(value => when(JUMP_EQUAL, value, [result(ALLOW)])), result(refuse(EPROTONOSUPPORT))];
  const type: Instruction[] = [argumentAt(1), { code: AND, jt: 0, jf: 0, k: SOCK_TYPE_MASK }];
  const internet = [...type, ...when(JUMP_EQUAL, SOCK_PACKET, [result(refuse(EAFNOSUPPORT))]), argumentAt(2), ...among(internetProtocols)];
  return [
    argumentAt(0),
    ...when(JUMP_EQUAL, AF_UNIX, [result(ALLOW)]),
    ...when(JUMP_EQUAL, AF_INET, internet),
    ...when(JUMP_EQUAL, AF_INET6, internet),
    ...when(JUMP_EQUAL, AF_NETLINK, [argumentAt(2), ...among(netlinkProtocols)]),
    result(refuse(EAFNOSUPPORT)),
  ];
}

const result = (k: number): Instruction => ({ code: RETURN, jt: 0, jf: 0, k });

/** `body` where the comparison holds; otherwise on behind it. */
function when(code: number, k: number, body: Instruction[]): Instruction[] {
  return [{ code, jt: 0, jf: body.length, k }, ...body];
}

function between(low: number, high: number, action: number): Instruction[] {
  return [{ code: JUMP_AT_LEAST, jt: 0, jf: 2, k: low }, { code: JUMP_ABOVE, jt: 1, jf: 0, k: high }, result(action)];
}

/** Runs of consecutive numbers, sorted. */
export function ranges(numbers: number[]): [number, number][] {
  const merged: [number, number][] = [];
  for (const number of numbers.filter(n => n >= 0).sort((a, b) => a - b)) {
    const last = merged.at(-1);
    if (last && number <= last[1] + 1) last[1] = number;
    else merged.push([number, number]);
  }
  return merged;
}

function encode(program: Instruction[]): Uint8Array {
  const bytes = new Uint8Array(program.length * 8);
  const view = new DataView(bytes.buffer);
  program.forEach(({ code, jt, jf, k }, index) => {
    view.setUint16(index * 8, code, true);
    view.setUint8(index * 8 + 2, jt);
    view.setUint8(index * 8 + 3, jf);
    view.setUint32(index * 8 + 4, k >>> 0, true);
  });
  return bytes;
}
