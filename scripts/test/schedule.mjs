import { cpus } from 'node:os';

/** Suites that run at a time, however busy the machine is: a suite spends most of its time waiting. */
const suitesMin = 3;
/**
 * The most at a time, even if processors are still idle: a machine allows sixteen installations, and a cluster takes
 * six.
 */
const suitesMax = 4;
/** How long the processors are observed before one more suite begins, ms. */
const lookMs = 5_000;
/**
 * Share of the processors' time, from 0 to 1, that must be idle for one more suite. Three typical, mostly waiting
 * suites leave a quarter to a third of two processors, which would stay idle to the end of the run.
 */
const idleEnough = 0.15;

/**
 * Runs all suites in order, three at a time, and more if these leave the processors idle.
 *
 * `run(index, suite)` runs one to its end. `idleShare` answers the idle share of the processors' time since its last
 * call; `pause` passes the time between two looks.
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
