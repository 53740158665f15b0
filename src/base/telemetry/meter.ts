/**
 * Metrics of this process, in the text format of Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats/). Labels take their values from small closed sets;
 * series beyond a metric's limit are added up in one.
 */

/** A line of a metric: `suffix` is what a histogram appends to the name. */
export type Sample = { suffix?: string; labels?: Record<string, string | number>; value: number };

/** A metric family of Prometheus: all lines of one name. Names: `atoll_…`, base units, counters end in `_total`. */
export type Metric = {
  name: string;
  help: string;
  kind: 'counter' | 'gauge' | 'histogram';
  samples: readonly Sample[];
};

/** A metric that only grows. */
type Counter = {
  /** `values`: the labels' values, in the order of the labels. */
  add(values: readonly string[], amount?: number): void;
  metric(): Metric;
};

/** A metric that counts observations by size. */
type Histogram = { observe(values: readonly string[], value: number): void; metric(): Metric };

type Description = { name: string; help: string; labels: readonly string[] };

/** Series of one metric; further ones are counted under the label values `other`. */
export const seriesMax = 1_000;

/** A counter that starts at 0, without series until something is added. */
export function counter({ name, help, labels }: Description): Counter {
  const series = new Series<{ value: number }>(labels, () => ({ value: 0 }));
  return {
    add(values, amount = 1) {
      series.of(values).value += amount;
    },
    metric: () => ({
      name,
      help,
      kind: 'counter',
      samples: series.all().map(({ labels: of, state }) => ({ labels: of, value: state.value })),
    }),
  };
}

/** `bounds`: upper ends of the buckets, ascending, without infinity. */
export function histogram({ name, help, labels }: Description, bounds: readonly number[]): Histogram {
  const series = new Series(labels, () => ({ buckets: bounds.map(() => 0), count: 0, sum: 0 }));
  return {
    observe(values, value) {
      const state = series.of(values);
      const bucket = bounds.findIndex(bound => value <= bound);
      if (bucket >= 0) state.buckets[bucket] = (state.buckets[bucket] ?? 0) + 1;
      state.count++;
      state.sum += value;
    },
    metric: () => ({
      name,
      help,
      kind: 'histogram',
      samples: series.all().flatMap(({ labels: of, state }) => linesOf(of, bounds, state)),
    }),
  };
}

function linesOf(
  labels: Record<string, string>,
  bounds: readonly number[],
  state: { buckets: number[]; count: number; sum: number },
): Sample[] {
  let upTo = 0;
  const buckets = bounds.map((bound, index) => {
    upTo += state.buckets[index] ?? 0;
    return { suffix: '_bucket', labels: { ...labels, le: bound }, value: upTo };
  });
  return [
    ...buckets,
    { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: state.count },
    { suffix: '_sum', labels, value: state.sum },
    { suffix: '_count', labels, value: state.count },
  ];
}

class Series<State> {
  readonly #labels: readonly string[];
  readonly #create: () => State;
  readonly #states = new Map<string, { labels: Record<string, string>; state: State }>();

  constructor(labels: readonly string[], create: () => State) {
    this.#labels = labels;
    this.#create = create;
  }

  of(values: readonly string[]): State {
    const key = values.join('\0');
    const known = this.#states.get(key);
    if (known) return known.state;
    if (this.#states.size >= seriesMax - 1 && values.some(value => value !== 'other'))
      return this.of(this.#labels.map(() => 'other'));
    const state = this.#create();
    this.#states.set(key, {
      labels: Object.fromEntries(this.#labels.map((label, index) => [label, values[index] ?? ''])),
      state,
    });
    return state;
  }

  all(): { labels: Record<string, string>; state: State }[] {
    return [...this.#states.values()];
  }
}

/** A gauge without labels. */
export function gauge(name: string, help: string, value: number): Metric {
  return { name, help, kind: 'gauge', samples: [{ value }] };
}

/** A counter without labels whose value is kept elsewhere. */
export function total(name: string, help: string, value: number): Metric {
  return { name, help, kind: 'counter', samples: [{ value }] };
}

/** Metrics in Prometheus's text format. Two of one name are a mistake: the first counts. */
export function writeMetrics(metrics: readonly Metric[]): string {
  const first = new Map(metrics.toReversed().map(metric => [metric.name, metric]));
  return metrics
    .filter(metric => first.get(metric.name) === metric)
    .map(writeMetric)
    .join('');
}

function writeMetric({ name, help, kind, samples }: Metric): string {
  const lines = samples.map(
    ({ suffix = '', labels = {}, value }) => `${name}${suffix}${labelText(labels)} ${numberText(value)}\n`,
  );
  return (
    `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ` +
    `${kind}\n${lines.join('')}`
  );
}

function labelText(labels: Record<string, string | number>): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) =>
      `${name}="${String(value).replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')}"`,
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  return Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf';
}
