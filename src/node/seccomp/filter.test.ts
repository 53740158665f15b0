import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readSeccompFilter } from './filter.ts';

const helper = join(import.meta.dir, '../../../dist/helper');
const filterFor = (architecture: string) => readSeccompFilter(helper, architecture);

/** Interprets the few BPF instructions that the filter uses, as the kernel would. */
function run(program: Uint8Array, data: { nr: number; arch: number; args?: (number | bigint)[] }): number {
  const input = new DataView(new ArrayBuffer(64));
  input.setUint32(0, data.nr, true);
  input.setUint32(4, data.arch, true);
  data.args?.forEach((value, index) =>
    input.setBigUint64(16 + index * 8, BigInt.asUintN(typeof value === 'bigint' ? 64 : 32, BigInt(value)), true),
  );
  const code = new DataView(program.buffer, program.byteOffset, program.length);
  for (let pc = 0, a = 0; pc < program.length / 8; pc++) {
    const [op, jt, jf, k] = [
      code.getUint16(pc * 8, true),
      code.getUint8(pc * 8 + 2),
      code.getUint8(pc * 8 + 3),
      code.getUint32(pc * 8 + 4, true),
    ];
    if (op === 0x20) a = input.getUint32(k, true);
    else if (op === 0x54) a = (a & k) >>> 0;
    else if (op === 0x05) pc += k;
    else if (op === 0x15) pc += a === k ? jt : jf;
    else if (op === 0x35) pc += a >= k ? jt : jf;
    else if (op === 0x25) pc += a > k ? jt : jf;
    else if (op === 0x06) return k;
    else throw new Error(`unexpected instruction ${op}`);
  }
  throw new Error('ran off the end');
}

const arch = 0xc000003e;
const ALLOW = 0x7fff0000;
const EPERM = 0x00050001;
const ENOSYS = 0x00050026;
const filter = filterFor('x64');
const nr = {
  read: 0,
  mmap: 9,
  ioctl: 16,
  socket: 41,
  clone: 56,
  fork: 57,
  execve: 59,
  ptrace: 101,
  mount: 165,
  unshare: 272,
  setns: 308,
  bpf: 321,
  openat2: 437,
  clone3: 435,
  io_uring_setup: 425,
  personality: 135,
};

test('ordinary calls pass, dangerous ones do not', () => {
  for (const call of ['read', 'mmap', 'fork', 'execve', 'ptrace', 'openat2'] as const)
    expect(run(filter, { nr: nr[call], arch })).toBe(ALLOW);
  for (const call of ['mount', 'unshare', 'setns', 'bpf', 'io_uring_setup'] as const)
    expect(run(filter, { nr: nr[call], arch })).toBe(EPERM);
});

test('clone passes without namespace flags only, clone3 does not exist', () => {
  expect(run(filter, { nr: nr.clone, arch, args: [0x01200011] })).toBe(ALLOW);
  for (const bit of [17, 25, 26, 27, 28, 29, 30])
    expect(run(filter, { nr: nr.clone, arch, args: [(1 << bit) | 17] })).toBe(EPERM);
  expect(run(filter, { nr: nr.clone3, arch })).toBe(ENOSYS);
});

test('arguments decide about sockets, terminals and personalities', () => {
  expect(run(filter, { nr: nr.ioctl, arch, args: [0, 0x5413] })).toBe(ALLOW);
  expect(run(filter, { nr: nr.ioctl, arch, args: [0, 0x5412] })).toBe(EPERM);
  expect(run(filter, { nr: nr.personality, arch, args: [0xffffffff] })).toBe(ALLOW);
  expect(run(filter, { nr: nr.personality, arch, args: [8] })).toBe(EPERM);
});

test('sockets are of the families and protocols that programs need', () => {
  const [EPROTONOSUPPORT, EAFNOSUPPORT] = [0x0005005d, 0x00050061];
  for (const [name, architecture, code] of [
    ['x64', arch, [41, 53]],
    ['arm64', 0xc00000b7, [198, 199]],
  ] as const) {
    const program = filterFor(name);
    for (const number of code) {
      const socket = (...args: number[]) => run(program, { nr: number, arch: architecture, args });
      for (const args of [
        [1, 1, 0],
        [1, 5, 0],
        [2, 1, 0],
        [2, 0x80801, 6],
        [2, 2, 17],
        [2, 3, 1],
        [10, 2, 58],
        [10, 3, 255],
        [16, 3, 0],
        [16, 2, 4],
      ])
        expect(socket(...args)).toBe(ALLOW);
      for (const args of [
        [2, 1, 262],
        [2, 1, 132],
        [2, 6, 33],
        [10, 5, 132],
        [2, 2, 136],
        [16, 3, 9],
        [16, 3, 12],
        [16, 3, 15],
        [16, 3, 16],
        [16, 3, 21],
      ])
        expect(socket(...args)).toBe(EPROTONOSUPPORT);
      for (let family = 0; family < 64; family++)
        if (![1, 2, 10, 16].includes(family)) expect(socket(family, 3, 0)).toBe(EAFNOSUPPORT);
      expect(socket(2, 10, 0)).toBe(EAFNOSUPPORT); // SOCK_PACKET
      expect(socket(2, 0x80000 | 10, 0x300)).toBe(EAFNOSUPPORT);
    }
  }
});

test('the limit of core files stays, but a program that sets it sees no error', () => {
  const errno = 0x00050000;
  expect(run(filter, { nr: 160, arch, args: [4, 0x1000] })).toBe(errno);
  expect(run(filter, { nr: 160, arch, args: [7, 0x1000] })).toBe(ALLOW);
  expect(run(filter, { nr: 302, arch, args: [0, 4, 0, 0x1000] })).toBe(ALLOW);
  expect(run(filter, { nr: 302, arch, args: [0, 4, 0x1000, 0] })).toBe(errno);
  expect(run(filter, { nr: 302, arch, args: [0, 4, 0x1000, 0x2000] })).toBe(EPERM);
  expect(run(filter, { nr: 302, arch, args: [0, 7, 0x1000, 0x2000] })).toBe(ALLOW);
});

test('calls that no program needs fail as if they did not exist', () => {
  for (const number of [206, 209, 210, 207, 208, 333, 447, 154, 216, 435])
    expect(run(filter, { nr: number, arch })).toBe(ENOSYS);
  for (const number of [0, 2, 447, 234, 435])
    expect(run(filterFor('arm64'), { nr: number, arch: 0xc00000b7 })).toBe(ENOSYS);
});

test('other entries into the kernel and unknown calls are closed', () => {
  expect(run(filter, { nr: nr.read, arch: 0x40000003 })).toBe(0x80000000);
  expect(run(filter, { nr: 0x40000000 | nr.read, arch })).toBe(ENOSYS);
  expect(run(filter, { nr: 9999, arch })).toBe(ENOSYS);
});

test('arm64 has its own numbers', () => {
  const arm = filterFor('arm64');
  expect(run(arm, { nr: 63, arch: 0xc00000b7 })).toBe(ALLOW); // read
  expect(run(arm, { nr: 40, arch: 0xc00000b7 })).toBe(EPERM); // mount
  expect(run(arm, { nr: 63, arch })).toBe(0x80000000);
});

test('bits of an argument that the kernel ignores change nothing', () => {
  const high = (value: number, index: number) => {
    const args = [0, 0, 0, 0].map(() => 0n);
    args[index] = (1n << 32n) | BigInt(value);
    return args;
  };
  expect(run(filter, { nr: nr.ioctl, arch, args: high(0x5412, 1) })).toBe(EPERM);
  expect(run(filter, { nr: 160, arch, args: high(4, 0) })).toBe(0x00050000);
  expect(run(filter, { nr: nr.socket, arch, args: high(17, 0) })).toBe(0x00050061);
  expect(run(filter, { nr: nr.socket, arch, args: high(2, 0) })).toBe(ALLOW);
});

test('a filter that set-up has not made is missed with a remedy', () => {
  const directory = mkdtempSync(join(tmpdir(), 'atoll-seccomp-'));
  try {
    expect(() => readSeccompFilter(join(directory, 'helper'))).toThrow('run `npm run up`');
  } finally {
    rmSync(directory, { recursive: true });
  }
});
