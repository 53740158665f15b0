import type { BuildLogEntry } from '../../../protocol/api/template-build.ts';

/** A step of a build, according to its log. */
export type Step = {
  /** Its place, e.g. `builder 2/5`. */
  place: string;
  /** What it does, e.g. `RUN make`. */
  what: string;
  /** How long it took, ms; null while it runs, and if its result was found. */
  tookMs: number | null;
  isCached: boolean;
  hasFailed: boolean;
};

const lineOfStep = /^(CACHED )?\[([^\]]{1,200})\] (.*)$/s;
const lineOfEnd = /^(done in|failed after) ([\d.]+) (ms|s|min)\b/;
const unitMs: Record<string, number> = { ms: 1, s: 1_000, min: 60_000 };

/** The steps in a build's log, in order. */
export function stepsOf(log: readonly Pick<BuildLogEntry, 'message'>[]): Step[] {
  const steps = new Map<string, Step>();
  for (const { message } of log) {
    const [, cached, place = '', what = ''] = lineOfStep.exec(message) ?? [];
    if (place === '') continue;
    const step = steps.get(place);
    const [, how, count = '', unit = ''] = lineOfEnd.exec(what) ?? [];
    if (how === undefined) {
      if (!step) steps.set(place, { place, what, tookMs: null, isCached: cached !== undefined, hasFailed: false });
    } else if (step) {
      step.tookMs = Math.round(Number(count) * (unitMs[unit] ?? 0));
      step.hasFailed = how === 'failed after';
    }
  }
  return [...steps.values()];
}

/** A step of one build beside the same step of another; null if it has none. */
type Pair = { key: string; here: Step | null; there: Step | null };

/** The steps of two builds side by side: steps that do the same form a pair, wherever they stand. */
export function compareSteps(here: readonly Step[], there: readonly Step[]): Pair[] {
  const left = [...there];
  const pairs: Pair[] = here.map(step => {
    const at = left.findIndex(({ what }) => what === step.what);
    const [same = null] = at < 0 ? [] : left.splice(at, 1);
    return { key: `here ${step.place}`, here: step, there: same };
  });
  return [...pairs, ...left.map(step => ({ key: `there ${step.place}`, here: null, there: step }))];
}
