import { expect, test } from 'bun:test';
import { counter, gauge, histogram, seriesMax, writeMetrics } from './meter.ts';

test('counters, gauges and histograms are written as Prometheus reads them', () => {
  const requests = counter({ name: 'requests_total', help: 'Requests\nof all', labels: ['route', 'status'] });
  requests.add(['/a', '200']);
  requests.add(['/a', '200'], 2);
  requests.add(['/"odd\\path\n', '404']);
  const seconds = histogram({ name: 'seconds', help: 'How long', labels: ['route'] }, [0.1, 1]);
  for (const value of [0.1, 0.2, 5]) seconds.observe(['/a'], value);
  expect(writeMetrics([requests.metric(), seconds.metric(), gauge('open', 'Now', 3), gauge('open', 'Twice', 4)])).toBe(
    [
      '# HELP requests_total Requests\\nof all',
      '# TYPE requests_total counter',
      'requests_total{route="/a",status="200"} 3',
      'requests_total{route="/\\"odd\\\\path\\n",status="404"} 1',
      '# HELP seconds How long',
      '# TYPE seconds histogram',
      'seconds_bucket{route="/a",le="0.1"} 1',
      'seconds_bucket{route="/a",le="1"} 2',
      'seconds_bucket{route="/a",le="+Inf"} 3',
      'seconds_sum{route="/a"} 5.3',
      'seconds_count{route="/a"} 3',
      '# HELP open Now',
      '# TYPE open gauge',
      'open 3',
      '',
    ].join('\n'),
  );
});

test('a label that takes any value does not fill the memory, and nothing is lost of the sum', () => {
  const wild = counter({ name: 'wild_total', help: 'Wild', labels: ['a', 'b'] });
  for (let index = 0; index < 3 * seriesMax; index++) wild.add([`${index}`, 'x']);
  const { samples } = wild.metric();
  expect(samples.length).toBe(seriesMax);
  expect(samples.reduce((sum, sample) => sum + sample.value, 0)).toBe(3 * seriesMax);
  expect(samples.at(-1)).toEqual({ labels: { a: 'other', b: 'other' }, value: 2 * seriesMax + 1 });
});
