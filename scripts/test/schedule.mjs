import { cpus } from 'node:os';

/** Suites that run at a time, however busy the machine is: most of a suite's time is waiting. */
const suitesMin = 3;
/** And the most, where the processors are idle all the same: a machine has sixteen installations, and a cluster six. */
const suitesMax = 4;
/** Time over which the processors are looked at before one more suite begins, ms. */
const lookMs = 5_000;
/**
 * Part of the processors' time, from 0 to 1, that has to be idle for one more suite. Three suites that wait as most do
 * leave a quarter to a third of two processors, which would stay idle to the end of the run.
 */
const idleEnough = 0.15;

/**
 * Runs all suites in their order, three at a time, and more where these leave the processors idle.
 *
 * `run(index, suite)` runs one to its end. `idleShare` answers which part of the processors' time was idle since it was
 * asked last; `pause` passes the time between two looks.
 */
export async function runSuites(suites, run, { idleShare = idleShareSince(), pause = sleep } = {}) {
  const waiting = [...suites.entries()];
  const running = new Set();
  const begin = () => {
    const suite = run(...waiting.shift()).finally(() => running.delete(suite));
    running.add(suite);
  };
  while (waiting.length > 0) {
    while (waiting.length > 0 && running.size < suitesMin) begin();
    const looked = pause(lookMs).then(() => true);
    const isTime = (await Promise.race([looked, ...running])) === true;
    if (isTime && idleShare() >= idleEnough && waiting.length > 0 && running.size < suitesMax) begin();
  }
  await Promise.all(running);
}

function idleShareSince() {
  let before = processorTimes();
  return () => {
    const now = processorTimes();
    const [idle, all] = [now.idle - before.idle, now.all - before.all];
    before = now;
    return all > 0 ? idle / all : 0;
  };
}

function processorTimes() {
  const each = cpus().map(({ times }) => times);
  const sum = values => values.reduce((total, value) => total + value, 0);
  return { idle: sum(each.map(({ idle }) => idle)), all: sum(each.flatMap(times => Object.values(times))) };
}

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms).unref());
