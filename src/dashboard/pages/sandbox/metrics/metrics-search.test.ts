import { expect, test } from 'bun:test';
import { metricsCsv } from './csv.ts';
import { moves, readMetricsSearch, spanOf } from './metrics-search.ts';

test('a span is read where it is one, whoever wrote it', () => {
  expect(readMetricsSearch({ range: '6h', from: 1000, to: 2000 })).toEqual({ range: '6h', from: 1000, to: 2000 });
  expect(readMetricsSearch({ range: 'toString', from: 2000, to: 1000 })).toEqual({});
  expect(readMetricsSearch({ from: 1000 })).toEqual({});
  expect(readMetricsSearch({ from: 1000, to: 1010 })).toEqual({});
});

test('what is drawn is widened to the shortest span', () => {
  expect(spanOf(100.4, 200.2)).toEqual({ from: 100, to: 201 });
  expect(spanOf(100, 104)).toEqual({ from: 87, to: 117 });
});

test('moves keep the length or change it by half', () => {
  const span = { from: 1000, to: 2000 };
  expect(moves.Earlier(span)).toEqual({ from: 500, to: 1500 });
  expect(moves.Later(span)).toEqual({ from: 1500, to: 2500 });
  expect(moves.Closer(span)).toEqual({ from: 1250, to: 1750 });
  expect(moves.Wider(span)).toEqual({ from: 500, to: 2500 });
});

test('samples are lines of a table, with the names of the API', () => {
  const sample = { cpuCount: 2, cpuUsedPct: 12.5, memUsed: 1, memTotal: 4, memCache: 2, diskUsed: 5, diskTotal: 9 };
  const text = metricsCsv([{ timestamp: '2026-01-01T00:00:00Z', timestampUnix: 1_767_225_600, ...sample }]);
  expect(text).toBe(
    'timestamp,cpuUsedPct,memUsed,memCache,memTotal,diskUsed,diskTotal\r\n2026-01-01T00:00:00Z,12.5,1,2,4,5,9\r\n',
  );
});
