import { dlopen, ptr } from 'bun:ffi';
import { closeSync, constants, openSync } from 'node:fs';
import { AtollError } from '../../base/error.ts';
import { errno, libc } from '../native/libc.ts';
import { allowedDevices } from './allowed-devices.ts';

const { syscall } = dlopen('libc.so.6', {
  // Variadic in C; integers and pointers travel the same way on x86-64 and arm64 Linux.
  syscall: { args: ['i64', 'int', 'ptr', 'u32'], returns: 'i64' },
}).symbols;

/** The number of bpf(2), and those of linux/bpf.h. */
const sysBpf = process.arch === 'arm64' ? 280 : 321;
const command = { load: 5, attach: 8 } as const;
const cgroupDeviceProgram = 15;
const cgroupDeviceHook = 6;
const characterDevice = 2;

/** A program for the kernel's own virtual machine, 8 bytes per instruction. */
type Instruction = { code: number; to?: number; from?: number; offset?: number; value?: number };

/** Instructions by what they do; linux/bpf_common.h. */
const opcode = { load32: 0x61, and: 0x57, jumpUnless: 0x55, move: 0xb7, exit: 0x95 } as const;

/**
 * Makes the kernel refuse every device that is not among `allowedDevices` to everything below a group of version 2,
 * both opening and making it. Replaces a filter that the group has, because an older release may have made it. Throws
 * `unavailable` if the kernel accepts none.
 */
export function filterDevices(directory: string): void {
  const program = loadProgram(deviceProgram());
  try {
    attach(program, directory);
  } finally {
    libc.close(program);
  }
}

/** struct bpf_cgroup_dev_ctx: the access and the kind of device in one word, then its numbers. */
function deviceProgram(): Instruction[] {
  const [answer, context, kind, major, minor] = [0, 1, 2, 3, 4];
  const answering = (value: number): Instruction[] => [{ code: opcode.move, to: answer, value }, { code: opcode.exit }];
  const allowing = allowedDevices.flatMap(device => {
    const minorIs: Instruction[] =
      device.minor === undefined ? [] : [{ code: opcode.jumpUnless, to: minor, value: device.minor, offset: 2 }];
    const majorIs = { code: opcode.jumpUnless, to: major, value: device.major, offset: minorIs.length + 2 };
    return [majorIs, ...minorIs, ...answering(1)];
  });
  return [
    { code: opcode.load32, to: kind, from: context, offset: 0 },
    { code: opcode.load32, to: major, from: context, offset: 4 },
    { code: opcode.load32, to: minor, from: context, offset: 8 },
    { code: opcode.and, to: kind, value: 0xffff },
    { code: opcode.jumpUnless, to: kind, value: characterDevice, offset: allowing.length },
    ...allowing,
    ...answering(0),
  ];
}

function loadProgram(program: Instruction[]): number {
  const instructions = new DataView(new ArrayBuffer(program.length * 8));
  for (const [index, { code, to = 0, from = 0, offset = 0, value = 0 }] of program.entries()) {
    instructions.setUint8(index * 8, code);
    instructions.setUint8(index * 8 + 1, to | (from << 4));
    instructions.setInt16(index * 8 + 2, offset, true);
    instructions.setInt32(index * 8 + 4, value, true);
  }
  const code = new Uint8Array(instructions.buffer);
  // The kernel reads the licence. The program calls no function that only programs under the kernel's own licence may.
  const licence = Buffer.from('none\0');
  const attributes = new DataView(new ArrayBuffer(48));
  attributes.setUint32(0, cgroupDeviceProgram, true);
  attributes.setUint32(4, program.length, true);
  attributes.setBigUint64(8, BigInt(ptr(code)), true);
  attributes.setBigUint64(16, BigInt(ptr(licence)), true);
  return bpf(command.load, attributes, [code, licence]);
}

function attach(program: number, directory: string): void {
  const group = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    const attributes = new DataView(new ArrayBuffer(16));
    attributes.setUint32(0, group, true);
    attributes.setUint32(4, program, true);
    attributes.setUint32(8, cgroupDeviceHook, true);
    bpf(command.attach, attributes, []);
  } finally {
    closeSync(group);
  }
}

/** `held` is what the attributes point to: it must stay until the kernel has read it. */
function bpf(which: number, attributes: DataView<ArrayBuffer>, held: Uint8Array[]): number {
  const bytes = new Uint8Array(attributes.buffer);
  const result = Number(syscall(sysBpf, which, bytes, bytes.length));
  if (result < 0 || held.some(({ length }) => length === 0))
    throw new AtollError('unavailable', `the kernel takes no filter of devices (bpf: errno ${errno()})`);
  return result;
}
