import { AtollError } from '../../base/error.ts';
import { counter, gauge, histogram } from '../../base/telemetry/meter.ts';
import type { Metric } from '../../base/telemetry/meter.ts';
import { Recent } from './recent.ts';
import type { Outcome } from './recent.ts';

/** Upper ends of the buckets, seconds: from answers out of memory to builds of an hour. */
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const operationSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const buildSeconds = [1, 5, 15, 30, 60, 120, 300, 600, 1800, 3600];

/** The name of the workflow that creates a sandbox. */
export const createWorkflow = 'create-sandbox';

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** The outcome of an operation that threw `error`. */
export function outcomeOf(error: unknown): Outcome {
  return error instanceof AtollError && error.status < 500 ? 'refused' : 'failed';
}

/** The code of an error, or its detail, which is more exact. */
const causeOf = (error: unknown): string => (error instanceof AtollError ? (error.detail ?? error.code) : 'internal');

/** What this process counts of its own work, for the operator's metrics. */
export type Measures = {
  /** Counts a request; call the returned function when it is answered. `route`: the path of its operation, or null. */
  request(method: string): (route: string | null, status: number) => void;
  /** Counts a workflow of the given name that has ended. */
  workflow(name: string, outcome: Outcome, seconds: number): void;
  /** Counts a create or fork that failed, however many machines were asked; `error`: what its caller is told. */
  notCreated(error: unknown): void;
  build(outcome: 'ready' | 'error', seconds: number): void;
  reconciled(reconciler: string, outcome: 'ok' | 'failed'): void;
  metrics(): Metric[];
  /** The most recent part of it. */
  readonly recent: Recent;
};

/** Counters that begin at zero. */
export function createMeasures(): Measures {
  const labels = ['result'];
  const requests = counter({
    name: 'atoll_http_requests_total',
    help: 'Requests to the API by operation and status',
    labels: ['method', 'route', 'status'],
  });
  const latencies = histogram(
    { name: 'atoll_http_request_duration_seconds', help: 'From a request to its answer', labels: ['method', 'route'] },
    requestSeconds,
  );
  const builds = counter({ name: 'atoll_builds_total', help: 'Builds of templates by how they ended', labels });
  const buildTimes = histogram(
    { name: 'atoll_build_duration_seconds', help: 'How long builds took', labels },
    buildSeconds,
  );
  const reconciliations = counter({
    name: 'atoll_reconciler_runs_total',
    help: 'Runs of what keeps the standing truths',
    labels: ['reconciler', 'result'],
  });
  const recent = new Recent();
  const { workflow, notCreated, counted: ofSandboxes } = sandboxMeasures(recent);
  const counted = [requests, latencies, ...ofSandboxes, builds, buildTimes, reconciliations];
  let inFlight = 0;
  return {
    request(method) {
      const startMs = performance.now();
      const known = methods.has(method) ? method : 'other';
      inFlight++;
      return (route, status) => {
        inFlight--;
        requests.add([known, route ?? 'none', String(status)]);
        latencies.observe([known, route ?? 'none'], (performance.now() - startMs) / 1000);
      };
    },
    workflow,
    notCreated,
    build(outcome, seconds) {
      builds.add([outcome]);
      buildTimes.observe([outcome], seconds);
    },
    reconciled(name, outcome) {
      reconciliations.add([name, outcome]);
      recent.reconciled(name, outcome, Date.now());
    },
    recent,
    metrics: () => [
      ...counted.map(one => one.metric()),
      gauge('atoll_http_requests_in_flight', 'Requests to the API that are not answered yet', inFlight),
    ],
  };
}

/** Counts changes of sandboxes. */
function sandboxMeasures(recent: Recent) {
  const workflows = counter({
    name: 'atoll_sandbox_operations_total',
    help: 'What was done with sandboxes, by how it ended',
    labels: ['operation', 'result'],
  });
  const refusals = counter({
    name: 'atoll_sandbox_creates_refused_total',
    help: 'Creates and forks that were refused, by the reason that the caller was told',
    labels: ['reason'],
  });
  const durations = histogram(
    {
      name: 'atoll_sandbox_operation_duration_seconds',
      help: 'How long operations that succeeded took',
      labels: ['operation'],
    },
    operationSeconds,
  );
  return {
    counted: [workflows, refusals, durations],
    workflow(name: string, outcome: Outcome, seconds: number) {
      workflows.add([name, outcome]);
      if (outcome === 'ok') durations.observe([name], seconds);
      if (name === createWorkflow) recent.created(outcome, seconds, Date.now());
    },
    notCreated(error: unknown) {
      const outcome = outcomeOf(error);
      workflows.add([createWorkflow, outcome]);
      // By the code and not the detail: the list of codes is closed.
      if (outcome === 'refused' && error instanceof AtollError) refusals.add([error.code]);
      recent.created(outcome, 0, Date.now(), causeOf(error));
    },
  };
}
