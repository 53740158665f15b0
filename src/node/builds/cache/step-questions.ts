import { progressBounds } from '../../../protocol/build.ts';
import type { MadeStep, StepOutcome } from '../../../protocol/build.ts';

/** A question that control has not answered by then is none: the step is carried out. Milliseconds. */
const answerMs = 60_000;

/**
 * What a build of a cluster asks control: whether another machine has carried out a step before. A node can't call
 * control, so questions wait until control looks after the build's progress, which it does all the time.
 */
export type StepQuestions = {
  /** Asks for the outcome of a step; undefined where nobody knows it, or nobody answers in time. */
  ask(key: string, signal: AbortSignal): Promise<StepOutcome | undefined>;
  /** The key of the question that waits longest. */
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
