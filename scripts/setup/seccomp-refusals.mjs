// struct sock_filter: u16 code, u8 jt, u8 jf, u32 k (linux/filter.h)
const LOAD = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND = 0x54; // BPF_ALU | BPF_AND | BPF_K
const JUMP = 0x05; // BPF_JMP | BPF_JA
const JUMP_EQUAL = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const JUMP_AT_LEAST = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const JUMP_ABOVE = 0x25; // BPF_JMP | BPF_JGT | BPF_K
const RETURN = 0x06; // BPF_RET | BPF_K

const ENOSYS = 38;
const X32_BIT = 0x40000000;
// Offsets in struct seccomp_data (linux/seccomp.h); arguments are 64 bits, low word first.
const numberAt = 0;
const architectureAt = 4;
const argumentAt = index => 16 + index * 8;

/** Stands for a jump to the profile until its distance is known. */
const toProfile = Symbol('to the profile');

/**
 * The beginning of a filter: rules in OCI form, tried in order; the first that matches decides. It can only refuse;
 * SCMP_ACT_ALLOW leaves the call to what follows. libseccomp has no order: of overlapping rules it keeps the widest.
 * `numbers` has the numbers of the calls; `newest` is the highest known one.
 */
export function refusalsOf(rules, { audit, hasX32, newest, numbers }) {
  const names = [...new Set(rules.flatMap(rule => rule.names))].filter(name => numbers.get(name) >= 0);
  const program = [
    instruction(LOAD, architectureAt),
    // The profile kills calls through another architecture's entry.
    ...unless(JUMP_EQUAL, audit, [toProfile]),
    instruction(LOAD, numberAt),
    ...(hasX32 ? when(JUMP_AT_LEAST, X32_BIT, [refuse(ENOSYS)]) : []),
    ...when(JUMP_ABOVE, newest, [refuse(ENOSYS)]),
    ...names.flatMap(name =>
      when(JUMP_EQUAL, numbers.get(name), [
        ...rules.filter(rule => rule.names.includes(name)).flatMap(rule => ruleOf(rule)),
        toProfile,
      ]),
    ),
  ];
  return encode(
    program.map((each, index) => (each === toProfile ? instruction(JUMP, program.length - index - 1) : each)),
  );
}

function ruleOf({ action, errnoRet, args = [] }) {
  const end = action === 'SCMP_ACT_ALLOW' ? toProfile : refuse(errnoRet);
  return args.reduceRight((body, comparison) => compare(comparison, body), [end]);
}

/** `body` if the comparison holds; otherwise continues after it. */
function compare({ index, op, value, valueTwo }, body) {
  const words = number => [number % 2 ** 32, Math.floor(number / 2 ** 32)];
  const isMasked = op === 'SCMP_CMP_MASKED_EQ';
  if (!isMasked && op !== 'SCMP_CMP_EQ') throw new Error(`${op} can't be compared before the profile`);
  const [masks, wanted] = isMasked ? [words(value), words(valueTwo)] : [words(2 ** 64 - 1), words(value)];
  const [low, high] = [0, 1].map(word => ({
    at: argumentAt(index) + word * 4,
    mask: isMasked ? masks[word] : 2 ** 32 - 1,
    wanted: wanted[word],
  }));
  return [low, high]
    .filter(({ mask }) => mask !== 0)
    .reduceRight(
      (inner, { at, mask, wanted: number }) => [
        instruction(LOAD, at),
        ...(mask === 2 ** 32 - 1 ? [] : [instruction(AND, mask)]),
        ...when(JUMP_EQUAL, number, inner),
      ],
      body,
    );
}

const instruction = (code, k, jt = 0, jf = 0) => ({ code, jt, jf, k });
const refuse = errno => instruction(RETURN, 0x00050000 | errno);

function when(code, k, body) {
  if (body.length > 255) throw new Error('a rule is longer than a jump reaches');
  return [instruction(code, k, 0, body.length), ...body];
}

function unless(code, k, body) {
  return [instruction(code, k, body.length, 0), ...body];
}

function encode(program) {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, { code, jt, jf, k }] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(jt, index * 8 + 2);
    bytes.writeUInt8(jf, index * 8 + 3);
    bytes.writeUInt32LE(k >>> 0, index * 8 + 4);
  }
  return bytes;
}
