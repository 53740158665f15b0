import { expect, test } from 'bun:test';
import { CompiledQuery } from 'kysely';
import { eventsAfter, newestSequence } from '../../../src/api/event/store/after.ts';
import { insertAudit, listAudit } from '../../../src/api/event/store/audit.ts';
import { histories, pruneHistory } from '../../../src/api/event/store/history.ts';
import { listEvents, pruneEvents } from '../../../src/api/event/store/list.ts';
import { eventSource, eventStreamBounds } from '../../../src/api/event/rules/stream.ts';
import { recordEvent } from '../../../src/api/event/store/write.ts';
import { endRequest, findRequest, forgetRequest, takeRequest } from '../../../src/api/repeat/store/requests.ts';
import { enterReplica } from '../../../src/api/replica/store/replicas.ts';
import type { Db } from '../../../src/api/database/db.ts';
import { eventSubjects, type EventType } from '../../../src/protocol/api/event.ts';
import {
  highestOfTeam,
  latestBefore,
  pruneTeamMetrics,
  recordTeams,
  teamSpans,
} from '../../../src/api/metrics/store/team.ts';
import { countTemplates, mostUsedTemplates, pruneTemplateHours } from '../../../src/api/metrics/store/template.ts';
import { insertSandbox } from '../../../src/api/sandbox/store/create.ts';
import { onEachDatabase } from '../databases.ts';
import { manySandboxes, sandboxRecord, startUs, storeScene } from './scene.ts';

// Results of statements about the past, on both databases: events, the audit log, metrics of teams.

const tell = (db: Db, teamId: string, id: string, number: number, type: EventType = 'sandbox.lifecycle.created') =>
  db
    .transaction()
    .execute(transaction =>
      recordEvent(transaction, {
        teamId,
        type,
        subject: { kind: eventSubjects.find(kind => type.startsWith(`${kind}.`)) ?? 'sandbox', id },
        atUs: startUs + number,
        data: { number },
      }),
    );

type Numbered = { eventData: { number: number } };
const numberOf = (body: string) => (JSON.parse(body) as Numbered).eventData.number;
const numbersIn = (list: string) => (JSON.parse(list) as Numbered[]).map(({ eventData }) => eventData.number);

const entry = (entryId: string, teamId: string | null, number: number) => ({
  entryId,
  atUs: startUs + number,
  operation: 'deleteTeam',
  target: `team:${entryId}`,
  actorKind: 'admin' as const,
  actorId: null,
  teamId,
  address: '192.0.2.1',
  status: 204,
  before: { name: 'x' },
  after: null,
});

onEachDatabase(database => {
  test('events: a team reads its own, by subject and type, and those behind a sequence in their order', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    await tell(db, mine.teamId, 'a', 1);
    await tell(db, theirs.teamId, 'a', 2);
    await tell(db, mine.teamId, 'a', 3, 'sandbox.lifecycle.killed');
    await tell(db, mine.teamId, 'b', 4);
    const numbers = async (filter: Parameters<typeof listEvents>[2], oldestFirst = true, offset = 0) =>
      numbersIn(await listEvents(db, mine.teamId, filter, { offset, limit: 9, oldestFirst }));
    expect(await numbers({})).toEqual([1, 3, 4]);
    expect(await numbers({}, false, 1)).toEqual([3, 1]);
    expect(await numbers({ kind: 'sandbox', subjectId: 'a' })).toEqual([1, 3]);
    expect(await numbers({ types: ['sandbox.lifecycle.killed'] })).toEqual([3]);
    expect(await numbers({ kind: 'build' })).toEqual([]);
    const both = ['sandbox.lifecycle.killed', 'sandbox.lifecycle.created', 'sandbox.lifecycle.killed'] as const;
    expect(await numbers({ types: both })).toEqual([1, 3, 4]);
    expect(await numbers({ types: both, kind: 'sandbox' }, false, 1)).toEqual([3, 1]);
    expect(await numbers({ types: both, subjectId: 'a' }, false)).toEqual([3, 1]);
    expect(await numbers({ kind: 'sandbox' }, false, 2)).toEqual([1]);
    expect(await numbers({ subjectId: 'a' })).toEqual([1, 3]);
    expect(await numbers({ kind: 'build', subjectId: 'a' })).toEqual([]);
    expect(await numbers({ kind: 'build', types: both })).toEqual([]);
    const all = await eventsAfter(db, mine.teamId, 0, 9);
    expect(all.map(({ body }) => numberOf(body))).toEqual([1, 3, 4]);
    const [first, , last] = all;
    expect((await eventsAfter(db, mine.teamId, first?.sequence ?? 0, 1)).map(({ body }) => numberOf(body))).toEqual([
      3,
    ]);
    expect(await newestSequence(db, mine.teamId)).toBe(last?.sequence ?? -1);
    expect(await newestSequence(db, 'none')).toBe(0);
  });

  test('events: a page of a kind is the same, whether near by or among many others', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const typeAt = (number: number) => {
      if (number % 150 === 7) return 'build.lifecycle.ready';
      return number < 20 || number % 2 === 0 ? 'sandbox.lifecycle.created' : 'volume.lifecycle.created';
    };
    const all = Array.from({ length: 620 }, (_, number) => ({ number, type: typeAt(number) }) as const);
    for (const { number, type } of all) await tell(db, mine.teamId, 'a', number, type);
    for (const kind of eventSubjects)
      for (const oldestFirst of [true, false])
        for (const [offset, limit] of [
          [0, 3],
          [0, 100],
          [230, 100],
          [400, 100],
          [450, 100],
        ] as const) {
          const own = all.filter(({ type }) => type.startsWith(`${kind}.`)).map(({ number }) => number);
          const page = numbersIn(await listEvents(db, mine.teamId, { kind }, { offset, limit, oldestFirst }));
          expect(page).toEqual((oldestFirst ? own : own.reverse()).slice(offset, offset + limit));
        }
  });

  if (database.name === 'SQLite')
    test('events: those of a kind or a subject are found without looking at all of the team', async () => {
      await using scene = await storeScene(database);
      const asked: CompiledQuery[] = [];
      const watched = new Proxy(scene.db, {
        get(db, name) {
          const member: unknown = Reflect.get(db, name, db);
          if (typeof member !== 'function') return member;
          return (...args: unknown[]) => {
            if (name === 'executeQuery') asked.push(args[0] as CompiledQuery);
            return Reflect.apply(member, db, args) as unknown;
          };
        },
      });
      const planOf = async (filter: Parameters<typeof listEvents>[2]) => {
        await listEvents(watched, scene.mine.teamId, filter, { offset: 0, limit: 9, oldestFirst: false });
        const { sql, parameters } = asked.pop() ?? { sql: '', parameters: [] };
        const { rows } = await scene.db.executeQuery<{ detail: string }>(
          CompiledQuery.raw(`explain query plan ${sql}`, [...parameters]),
        );
        return rows.map(({ detail }) => detail).filter(detail => detail.includes(' events '));
      };
      for (const [filter, index] of [
        [{ kind: 'volume' }, 'events_by_type (team_id=? AND type=?)'],
        [{ kind: 'sandbox', subjectId: 'a' }, 'events_by_subject (subject_kind=? AND subject_id=?)'],
        [{ subjectId: 'a' }, 'events_by_subject (subject_kind=? AND subject_id=?)'],
      ] as const) {
        const plan = await planOf(filter);
        expect(plan.filter(detail => detail.includes(index)).length).toBeGreaterThan(0);
        // All others are what was found there.
        expect(plan.filter(detail => !detail.includes(index) && !/\b(rowid|sequence)=\?/.test(detail))).toEqual([]);
      }
    });

  test('events: what is old goes, and of each team what exceeds its maximum', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    for (const number of [1, 2, 3, 4]) await tell(db, mine.teamId, 'a', number);
    await tell(db, theirs.teamId, 'a', 5);
    await pruneEvents(db, startUs + 2, 2);
    const left = async (teamId: string) => (await eventsAfter(db, teamId, 0, 9)).map(({ body }) => numberOf(body));
    expect([await left(mine.teamId), await left(theirs.teamId)]).toEqual([[3, 4], [5]]);
  });

  test('a stream tells of an event that becomes visible behind hundreds of later ones, to who goes on, too', async () => {
    // On SQLite, transactions run one after another: there the event simply is the first one.
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    const source = await eventSource(db, mine.teamId, { after: 0 });
    const numbersOf = async (from: typeof source) => (await from.next()).items.map(({ item }) => numberOf(item));
    const told: number[] = [];
    const tellMany = async () => {
      for (let number = 1; number <= 2 * eventStreamBounds.pageMax; number++) await tell(db, mine.teamId, 'a', number);
      for (let numbers = [0]; numbers.length > 0; told.push(...numbers)) numbers = await numbersOf(source);
    };
    await db.transaction().execute(async transaction => {
      const event = { teamId: mine.teamId, type: 'sandbox.lifecycle.killed' as const, atUs: startUs };
      await recordEvent(transaction, { ...event, subject: { kind: 'sandbox', id: 'late' }, data: { number: 1000 } });
      if (database.name === 'PostgreSQL') await tellMany();
    });
    if (database.name === 'SQLite') await tellMany();
    while (!told.includes(1000)) {
      told.push(...(await numbersOf(source)));
      await Bun.sleep(50);
    }
    expect(told.toSorted((a, b) => a - b)).toEqual(
      [...Array(2 * eventStreamBounds.pageMax).keys(), 999].map(n => n + 1),
    );

    const last = await newestSequence(db, mine.teamId);
    const again = await eventSource(db, mine.teamId, { after: last });
    expect((await numbersOf(again)).includes(1000)).toBe(database.name === 'PostgreSQL');
    const fromNow = await eventSource(db, mine.teamId, { after: null });
    expect(await numbersOf(fromNow)).toEqual([]);
    await tell(db, mine.teamId, 'b', 2000);
    expect(await numbersOf(fromNow)).toEqual([2000]);
  });

  test('audit: an entry that comes twice is there once, and pages are newest first', async () => {
    await using scene = await storeScene(database);
    const { db, mine } = scene;
    await insertAudit(db, entry('a', mine.teamId, 1));
    await insertAudit(db, { ...entry('a', mine.teamId, 1), status: 500 });
    await insertAudit(db, entry('b', null, 1));
    await insertAudit(db, { ...entry('c', mine.teamId, 2), operation: 'createTeam' });
    const ids = async (filter: object, after?: { atUs: number; id: string }) =>
      (await listAudit(db, filter, { ...(after && { after }), limit: 9 })).map(({ entryId }) => entryId);
    expect(await ids({})).toEqual(['c', 'b', 'a']);
    expect(await ids({}, { atUs: startUs + 1, id: 'b' })).toEqual(['a']);
    expect(await ids({ teamId: mine.teamId, operation: 'deleteTeam' })).toEqual(['a']);
    expect(await listAudit(db, { target: 'team:a' }, { limit: 9 })).toEqual([entry('a', mine.teamId, 1)]);
  });

  test('history: what is old goes, and of each team and of nobody what exceeds the maximum', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    for (const number of [1, 2, 3]) await insertAudit(db, entry(`m${number}`, mine.teamId, number));
    for (const number of [1, 2, 3]) await insertAudit(db, entry(`n${number}`, null, 2));
    await insertAudit(db, entry('t', theirs.teamId, 2));
    await pruneHistory(db, histories.audit, { beforeUs: startUs + 2, perTeamMax: 1 });
    expect((await listAudit(db, {}, { limit: 9 })).map(({ entryId }) => entryId)).toEqual(['m3', 't', 'n3']);
  });

  test('metrics of teams: the most of a minute counts, starts add up, and spans put minutes together', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const { teamId } = mine;
    const see = (atSeconds: number, running: number, starts: number) =>
      recordTeams(db, atSeconds, [{ teamId, running, starts }]);
    await recordTeams(db, 0, []);
    await see(600, 2, 1);
    await see(600, 5, 1);
    await see(600, 3, 0);
    await see(660, 1, 4);
    await see(780, 4, 0);
    expect(await teamSpans(db, teamId, { startSeconds: 600, endSeconds: 780 }, 120)).toEqual([
      { startSeconds: 600, concurrent: 5, starts: 6, latest: 1, sandboxSeconds: 240 },
      { startSeconds: 720, concurrent: 4, starts: 0, latest: 4, sandboxSeconds: 240 },
    ]);
    expect(await teamSpans(db, theirs.teamId, { startSeconds: 600, endSeconds: 780 }, 60)).toEqual([]);
    const range = { startSeconds: 600, endSeconds: 780 };
    expect(await highestOfTeam(db, teamId, range, 'concurrent')).toEqual({ atSeconds: 600, value: 5 });
    expect(await highestOfTeam(db, teamId, range, 'starts')).toEqual({ atSeconds: 660, value: 4 });
    expect([await latestBefore(db, teamId, 660), await latestBefore(db, teamId, 600)]).toEqual([3, null]);
    await pruneTeamMetrics(db, 661);
    expect(await latestBefore(db, teamId, 780)).toBeNull();
    expect(await latestBefore(db, teamId, 840)).toBe(4);
  });

  test('hours of templates: each minute counts once, whoever looks, and what ran the longest is told first', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const run = async (
      teamId: string,
      sandboxId: string,
      templateId: string,
      state: 'running' | 'paused' = 'running',
    ) =>
      expect(await insertSandbox(db, sandboxRecord(teamId, sandboxId, { templateId, state }), manySandboxes)).toBe(
        'inserted',
      );
    await run(mine.teamId, 'a', 'often');
    await run(mine.teamId, 'b', 'often');
    await run(mine.teamId, 'c', 'rare');
    await run(mine.teamId, 'd', 'rare', 'paused');
    await run(theirs.teamId, 'e', 'rare');
    for (const minute of [7_200, 7_200, 7_260, 7_200, 10_800]) await countTemplates(db, minute);
    const used = (teamId: string, startSeconds: number, endSeconds: number, limit = 9) =>
      mostUsedTemplates(db, teamId, { startSeconds, endSeconds }, limit);
    expect(await used(mine.teamId, 7_200, 10_800)).toEqual([
      { templateId: 'often', sandboxSeconds: 360 },
      { templateId: 'rare', sandboxSeconds: 180 },
    ]);
    expect(await used(mine.teamId, 7_300, 10_799, 1)).toEqual([{ templateId: 'often', sandboxSeconds: 240 }]);
    expect(await used(mine.teamId, 3_600, 7_199)).toEqual([]);
    expect(await used(theirs.teamId, 10_800, 10_800)).toEqual([{ templateId: 'rare', sandboxSeconds: 60 }]);
    await pruneTemplateHours(db, 7_201);
    expect(await used(mine.teamId, 0, 20_000)).toEqual([
      { templateId: 'often', sandboxSeconds: 120 },
      { templateId: 'rare', sandboxSeconds: 60 },
    ]);
  });

  test('repeated requests: one process takes each, and what is known of it is told until it is forgotten', async () => {
    await using scene = await storeScene(database);
    const { db, mine, theirs } = scene;
    const request = { teamId: mine.teamId, operation: 'createVolume', key: 'once' };
    const taken = { requestDigest: 'digest', replicaId: 'first', nowUs: startUs };
    await enterReplica(db, { replicaId: 'first', name: 'host' }, startUs + 10);
    expect(await findRequest(db, request, startUs)).toBeUndefined();
    expect(await takeRequest(db, request, taken)).toBe(true);
    expect(await takeRequest(db, request, { ...taken, replicaId: 'second' })).toBe(false);
    const others = [
      { ...request, teamId: theirs.teamId },
      { ...request, operation: 'forkSandbox' },
      { ...request, key: 'twice' },
    ];
    for (const other of others) expect(await takeRequest(db, other, taken)).toBe(true);

    const known = { requestDigest: 'digest', replicaId: 'first', sealedAnswer: null, isAlive: true };
    expect(await findRequest(db, request, startUs + 9)).toEqual(known);
    expect(await findRequest(db, request, startUs + 10)).toEqual({ ...known, isAlive: false });
    await endRequest(db, request, { sealedAnswer: 'sealed' });
    expect(await findRequest(db, request, startUs)).toEqual({ ...known, sealedAnswer: 'sealed' });
    await endRequest(db, others[2]!, 'unknown');
    expect(await findRequest(db, others[2]!, startUs)).toEqual({ ...known, replicaId: '', isAlive: false });
    await forgetRequest(db, request);
    expect(await findRequest(db, request, startUs)).toBeUndefined();
    for (const other of others.slice(0, 2)) expect(await findRequest(db, other, startUs)).toEqual(known);
  });
});
