type Ticks = { busy: number; all: number };

/**
 * Answers how busy each processor of the machine was since the last call: its number, and 0 to 1. `read` reads
 * /proc/stat (proc_stat(5)).
 */
export function processorShares(read: () => string): () => Map<number, number> {
  let last = ticksOf(read());
  return () => {
    const now = ticksOf(read());
    const shares = new Map<number, number>();
    for (const [processor, { busy, all }] of now) {
      const before = last.get(processor) ?? { busy: 0, all: 0 };
      shares.set(processor, all > before.all ? (busy - before.busy) / (all - before.all) : 0);
    }
    last = now;
    return shares;
  };
}

function ticksOf(text: string): Map<number, Ticks> {
  const ticks = new Map<number, Ticks>();
  for (const line of text.split('\n')) {
    const [name = '', ...fields] = line.split(' ');
    if (!/^cpu\d+$/.test(name)) continue;
    const [user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, softirq = 0, steal = 0] = fields.map(Number);
    const busy = user + nice + system + irq + softirq + steal;
    ticks.set(Number(name.slice('cpu'.length)), { busy, all: busy + idle + waiting });
  }
  return ticks;
}
