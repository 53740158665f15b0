import { expect, test } from 'bun:test';
import { Type } from '@sinclair/typebox';
import { int32, mapOf, nullable, oneOf, stringMap } from '../../protocol/api/primitives.ts';
import { queryValidator } from './query.ts';
import { answerChecker, validator } from './validate.ts';

const schema = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 5 }),
  count: Type.Optional(int32({ minimum: 0 })),
  kind: Type.Optional(oneOf(['a', 'b'])),
  inner: Type.Optional(Type.Object({ list: Type.Optional(Type.Array(int32({ maximum: 9 }), { maxItems: 2 })) })),
  labels: Type.Optional(stringMap()),
  map: Type.Optional(mapOf(Type.Object({ x: Type.String() }))),
  maybe: Type.Optional(nullable(Type.String())),
});
const validate = validator(schema, 'request body');

test('unknown members are dropped, and null for an optional member means not given', () => {
  const body = {
    name: 'n',
    extra: 1,
    count: null,
    kind: null,
    inner: { list: null, more: {} },
    labels: { x: 'y' },
    map: { k: { x: 'v', y: 'w' } },
    maybe: null,
  };
  expect(validate(body)).toEqual({ name: 'n', inner: {}, labels: { x: 'y' }, map: { k: { x: 'v' } }, maybe: null });
});

test('keys of maps are data, whatever they are called', () => {
  const body = JSON.parse('{"name":"n","labels":{"__proto__":"p","constructor":"c","toString":"t"}}') as unknown;
  expect(JSON.stringify(validate(body))).toBe(
    '{"name":"n","labels":{"__proto__":"p","constructor":"c","toString":"t"}}',
  );
  expect(validate(JSON.parse('{"name":"n","__proto__":{"count":5}}'))).toEqual({ name: 'n' });
});

test('a text with a NUL character is refused by its name, except in a map', () => {
  const labels = { '\0': '\0' };
  expect(validate({ name: 'n', labels })).toEqual({ name: 'n', labels });
  for (const [body, message] of [
    [{ name: 'n\0' }, 'name: must not hold a NUL character'],
    [{ name: 'n', maybe: '\0' }, 'maybe: must not hold a NUL character'],
  ] as const)
    expect(() => validate(body)).toThrow(message);
  const listed = validator(Type.Object({ tags: Type.Array(Type.String()) }), 'request body');
  expect(() => listed({ tags: ['a', 'b\0'] })).toThrow('tags[1]: must not hold a NUL character');
});

test('errors name the member and its rule', () => {
  const cases: Array<[body: unknown, message: string]> = [
    [[], 'request body: must be an object'],
    ['x', 'request body: must be an object'],
    [null, 'request body: must be an object'],
    [{}, 'name: is required'],
    [{ name: 1 }, 'name: must be a string'],
    [{ name: '' }, 'name: must have at least 1 characters'],
    [{ name: 'abcdef' }, 'name: must have at most 5 characters'],
    [{ name: 'n', count: -1 }, 'count: must be at least 0, not -1'],
    [{ name: 'n', count: 2 ** 31 }, 'count: must be at most 2147483647, not 2147483648'],
    [{ name: 'n', count: 1.5 }, 'count: must be an integer'],
    [{ name: 'n', kind: 'c' }, 'kind: must be one of a, b'],
    [{ name: 'n', inner: [] }, 'inner: must be an object'],
    [{ name: 'n', inner: { list: [1, 10] } }, 'inner.list[1]: must be at most 9, not 10'],
    [{ name: 'n', inner: { list: [1, 2, 3] } }, 'inner.list: must have at most 2 entries'],
    [{ name: 'n', labels: { 'a/b': 1 } }, 'labels["a/b"]: must be a string'],
    [{ name: 'n', labels: { a: null } }, 'labels.a: must be a string'],
    [{ name: 'n', map: { k: {} } }, 'map.k.x: is required'],
  ];
  for (const [body, message] of cases) expect(() => validate(body)).toThrow(message);
});

test('where unknown members are refused, the first one is named, wherever it is', () => {
  const strict = validator(schema, 'request body', 'refuse');
  const known = { name: 'n', inner: { list: [1] }, labels: { any: 'x' }, map: { k: { x: 'v' } } };
  expect(strict(known)).toEqual(known);
  const names = 'name, count, kind, inner, labels, map, maybe';
  for (const [member, message] of [
    [{ extra: 1 }, `extra: there is no such member; there are ${names}`],
    [{ inner: { more: 1 } }, 'inner.more: there is no such member; there are list'],
    [{ 'a/b~c': 1 }, '["a/b~c"]: there is no such member'],
    [{ ['x'.repeat(100)]: 1 }, `${'x'.repeat(64)}: there is no such member`],
  ] as const)
    expect(() => strict({ name: 'n', ...member })).toThrow(message);
  for (const none of [null, [], 'x', 1]) expect(() => strict(none)).toThrow('request body: must be an object');
  expect(() => strict({ name: 'n', inner: null, labels: [] })).toThrow('labels: must be an object');
});

test('members of any type keep their value', () => {
  const open = validator(Type.Object({ a: Type.Optional(int32()) }, { additionalProperties: true }), 'request body');
  const body = { a: 1, any: { deep: [null] } };
  expect(open(body)).toEqual(body);
  expect(() => open({ a: 'x' })).toThrow('a: must be an integer');
  const strict = validator(Type.Object({}, { additionalProperties: true }), 'request body', 'refuse');
  expect(strict({ any: 1 })).toEqual({ any: 1 });
});

test('times and UUIDs have their forms', () => {
  const check = (format: string) => validator(Type.Object({ it: Type.String({ format }) }), 'request body');
  const [time, uuid] = [check('date-time'), check('uuid')];
  const known = { it: '0f0e0d0c-0b0a-0908-0706-050403020100' };
  expect(uuid(known)).toEqual(known);
  expect(time({ it: '2026-01-02T03:04:05Z' })).toEqual({ it: '2026-01-02T03:04:05Z' });
  for (const it of ['', 'yesterday']) expect(() => time({ it })).toThrow('it: must be a string');
  for (const it of ['', known.it.toUpperCase(), `${known.it}0`]) expect(() => uuid({ it })).toThrow('it: must be');
});

test('query values become what the schema says', () => {
  const query = queryValidator(
    Type.Object({
      limit: Type.Optional(int32({ minimum: 1 })),
      on: Type.Optional(Type.Boolean()),
      states: Type.Optional(Type.Array(oneOf(['a', 'b']))),
      text: Type.Optional(Type.String()),
    }),
  );
  expect(query('limit=5&on=true&states=a,b&text=x%26y+z&other=1')).toEqual({
    limit: 5,
    on: true,
    states: ['a', 'b'],
    text: 'x&y z',
  });
  expect(query('')).toEqual({});
  expect(query('limit=1&limit=2')).toEqual({ limit: 1 });
  for (const bad of [
    'limit=0',
    'limit=1.0',
    'limit=0x5',
    'limit=',
    'limit=1e3',
    'on=1',
    'on=',
    'states=c',
    'states=a,',
  ]) {
    expect(() => query(bad)).toThrow(bad.split('=')[0]);
  }
});

test('an answer with an undocumented member is noticed', () => {
  const check = answerChecker(Type.Object({ a: Type.String(), b: Type.Optional(Type.String()) }), 'answer');
  check({ a: 'x', b: undefined });
  expect(() => check({ a: 'x', c: 'y' })).toThrow('not documented');
  expect(() => check({ b: 'x' })).toThrow('a: is required');
});
