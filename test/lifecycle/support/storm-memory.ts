import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ifThere } from '../../../src/base/if-there.ts';
import { runDirOf } from '../../support/leaks.ts';
import type { TestPlatform } from '../../support/platform.ts';
import type { StormClient } from './storm-client.ts';

/** Private memory without a file, in one piece: enough for most of it to arrive later after a resume from the disk. */
const sizeMiB = { least: 48, most: 96 } as const;
/** A plan exists as long as its memory is arriving: at least a tenth of a second. */
const lookMs = 20;

/**
 * Has memory whose contents depend on the seed, the place, and how often that place was written. On request it compares
 * all of it, rewrites some of it, and counts that: memory from an earlier pause has an earlier count.
 */
const program = `import hashlib, mmap, random, socket, sys
MiB, page = 1 << 20, 4096
seed, size = sys.argv[1], int(sys.argv[2])
memory = mmap.mmap(-1, size * MiB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
written, count = [0] * size, 0
rest = hashlib.shake_128(seed.encode()).digest(page - 64)
def content(piece):
    name = f'{seed} {piece} {written[piece]} '
    return b''.join(f'{name}{number}'.ljust(64).encode() + rest for number in range(MiB // page))
def fill(piece): memory[piece * MiB:(piece + 1) * MiB] = content(piece)
def wrong(piece):
    found, wanted = memory[piece * MiB:(piece + 1) * MiB], content(piece)
    for at in range(0, MiB, page) if found != wanted else ():
        if found[at:at + page] != wanted[at:at + page]:
            what = 'zeros' if found[at:at + page] == bytes(page) else 'others'
            yield f'{what} at {piece * MiB + at}, written {written[piece]} times'
def check():
    global count
    order = random.Random(count).sample(range(size), size)
    found = [what for piece in order for what in wrong(piece)]
    if found: return f'wrong: {len(found)} pages of {size} MiB after {count}: ' + ', '.join(found[:20])
    count += 1
    for piece in order[:4]:
        written[piece] += 1
        fill(piece)
    return f'right {count}'
for piece in range(size): fill(piece)
listener = socket.create_server(('127.0.0.1', 7000))
while True:
    connection, _ = listener.accept()
    try: connection.sendall(check().encode())
    except OSError: pass
    connection.close()
`;
const programPath = '/home/user/memory.py';
const ask = `bash -c '{ exec 3<> /dev/tcp/127.0.0.1/7000; } 2>/dev/null || { echo none; exit; }; cat <&3'`;

/** What a program in a sandbox keeps in its memory, as far as clients were told. */
export type StormMemory = {
  /** How often it was asked: one number, unless a strike cut off an answer. */
  counts: ReadonlySet<number>;
};

/** Starts the program; undefined if a strike cut that off. */
export async function startMemory(
  client: StormClient,
  id: string,
  random: () => number,
): Promise<StormMemory | undefined> {
  const [seed, size] = [
    Math.floor(random() * 2 ** 31),
    sizeMiB.least + Math.floor(random() * (sizeMiB.most - sizeMiB.least + 1)),
  ];
  const written = await client
    .agent(id, `/files?path=${programPath}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/octet-stream' },
      body: program,
    })
    .catch(() => undefined);
  if (written?.status !== 200) return undefined;
  const start = `(setsid python3 ${programPath} ${seed} ${size} >/dev/null 2>/tmp/memory.log &)`;
  const wait = `until { bash -c 'exec 3<>/dev/tcp/127.0.0.1/7000'; } 2>/dev/null; do sleep 0.05; done`;
  const said = await client.run(id, `${start}; ${wait}; echo started`).catch(() => '');
  // The connection attempt counts: it will be answered too, soon.
  return said === 'started\n' ? { counts: new Set([0, 1]) } : undefined;
}

/**
 * Makes the program compare all of its memory. Answers what is then known; `none` if it does not run; undefined if a
 * strike cut the answer off, which may count. Throws if its memory has changed.
 */
export async function checkMemory(
  client: StormClient,
  id: string,
  memory: StormMemory,
): Promise<StormMemory | 'none' | undefined> {
  const said = (await client.run(id, ask).catch(() => '')).trim();
  client.histories.note(id, `its memory: ${said}`);
  if (said === 'none') return 'none';
  const count = Number(/^right (\d+)$/.exec(said)?.[1] ?? '0');
  if (memory.counts.has(count - 1)) return { counts: new Set([count]) };
  if (said === '' && client.over) return undefined;
  throw new Error(
    `the memory of ${id}, asked ${[...memory.counts].join(' or ')} times: ${said}\n${client.histories.of(id)}`,
  );
}

/** The same, if an answer that was cut off may have counted. */
export const askedOnceMore = ({ counts }: StormMemory): StormMemory => ({
  counts: new Set([...counts].flatMap(count => [count, count + 1])),
});

/** Counts the restores whose memory arrives later, until disposed of. */
export function countLater(platform: TestPlatform): { seen(): number } & Disposable {
  const plans = new Set<string>();
  const directory = join(runDirOf(platform.ready.dataDir), 'later');
  const timer = setInterval(() => {
    for (const name of ifThere(() => readdirSync(directory), [])) if (!name.endsWith('.log')) plans.add(name);
  }, lookMs);
  return { seen: () => plans.size, [Symbol.dispose]: () => clearInterval(timer) };
}
