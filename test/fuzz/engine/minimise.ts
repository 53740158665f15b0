/** How often the failure is tried again while the input is shortened. */
const attemptsMax = 2_000;
/** And for how long, ms: the failure may be that an input takes long. */
const durationMsMax = 20_000;

/** The shortest input found that still fails: it leaves out ever smaller parts, then replaces bytes by plain ones. */
export async function minimise(input: Buffer, fails: (input: Buffer) => Promise<boolean>): Promise<Buffer> {
  let best = input;
  let attempts = 0;
  const until = Date.now() + durationMsMax;
  const better = async (candidate: Buffer) => {
    if (attempts++ >= attemptsMax || Date.now() > until || !(await fails(candidate))) return false;
    best = candidate;
    return true;
  };
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < best.length;) {
      if (!(await better(Buffer.concat([best.subarray(0, at), best.subarray(at + size)])))) at += size;
    }
  }
  for (let at = 0; at < best.length; at++) {
    if (best[at] === 0x61) continue;
    const candidate = Buffer.from(best);
    candidate[at] = 0x61;
    await better(candidate);
  }
  return best;
}
