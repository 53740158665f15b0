import { progressBounds } from '../../../protocol/build.ts';
import type { MadeStep, StepOutcome } from '../../../protocol/build.ts';

/** If control has not answered a question by then, the step is carried out. Milliseconds. */
const answerMs = 60_000;

/**
 * The questions of a cluster's build to control: whether another machine has already carried out a step. A node can't
 * call control, so questions wait until control reads the build's progress, which it does all the time.
 */
export type StepQuestions = {
  /** Asks for the outcome of a step; undefined if nobody knows it, or nobody answers in time. */
  ask(key: string, signal: AbortSignal): Promise<StepOutcome | undefined>;
  /** The key of the question that has waited longest. */
  first(): string | undefined;
  answer(key: string, outcome: StepOutcome | null): void;
  /** Records a step that was carried out here. */
  made(step: MadeStep): void;
  allMade(): MadeStep[];
};

/** Questions of one build; `onAsked` is called for each. */
export function createStepQuestions(onAsked: () => void): StepQuestions {
  const open = new Map<string, (outcome: StepOutcome | null) => void>();
  const made: MadeStep[] = [];
  return {
    async ask(key, signal) {
      const { promise, resolve } = Promise.withResolvers<StepOutcome | null>();
      const giveUp = () => resolve(null);
      const timer = setTimeout(giveUp, answerMs);
      signal.addEventListener('abort', giveUp, { once: true });
      open.set(key, resolve);
      onAsked();
      try {
        return (await promise) ?? undefined;
      } finally {
        open.delete(key);
        clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
      }
    },
    first: () => open.keys().next().value,
    answer: (key, outcome) => open.get(key)?.(outcome),
    made(step) {
      if (made.length < progressBounds.made) made.push(step);
    },
    allMade: () => made,
  };
}
