import { closeSync } from 'node:fs';
import { newUuid, randomName } from '../../src/base/id.ts';
import { createApiKey } from '../../src/api/credential/rules/api-keys.ts';
import { createInvitation } from '../../src/api/team/rules/invitations.ts';
import { addMember } from '../../src/api/team/rules/provision-user.ts';
import { registerTemplate } from './support/register-template.ts';
import { volumeToken } from '../../src/api/volume/rules/token.ts';
import { createVolume } from '../../src/api/volume/rules/volumes.ts';
import { endlessBuilder } from './fake-builder.ts';
import { Platform, adminToken, metricsToken, baseTemplate, call } from './platform.ts';
import type { Answer } from './platform.ts';
import type { TeamRecord, UserRecord } from '../../src/api/team/record.ts';
import { beginSession, isSessionCaller, sessionsOf } from './session-callers.ts';
import type { SessionCaller, SessionsOf } from './session-callers.ts';

export type Caller =
  | 'no key'
  | 'wrong key'
  | 'revoked key'
  | "other team's key"
  | 'access token'
  | 'access token with team'
  | "other team's member"
  | 'member with a foreign team'
  | 'wrong admin token'
  | 'admin'
  | 'metrics token'
  | 'admin with team'
  | "volume's token"
  | "other team's volume token"
  | 'right key'
  | "viewer's token with team"
  | SessionCaller;

/** A platform with a team that has everything, another one that has nothing, and all kinds of callers. */
export class Scene implements AsyncDisposable {
  readonly #platform: Platform;
  readonly #webhooks: string[] = [];
  readonly #headers: Record<Exclude<Caller, SessionCaller>, Record<string, string>>;
  readonly #sessions: SessionsOf;
  readonly team: TeamRecord;
  readonly user: UserRecord;
  readonly userToken: string;
  /** The volume that `volume's token` is for. */
  readonly volumeId: string;

  private constructor(
    platform: Platform,
    headers: Record<Exclude<Caller, SessionCaller>, Record<string, string>>,
    sessions: SessionsOf,
    user: UserRecord,
    userToken: string,
    volumeId: string,
  ) {
    this.#platform = platform;
    this.#headers = headers;
    this.#sessions = sessions;
    this.team = platform.team;
    this.user = user;
    this.userToken = userToken;
    this.volumeId = volumeId;
  }

  static async open(): Promise<Scene> {
    const platform = await Platform.start({
      builder: endlessBuilder(),
      limits: { concurrentBuilds: 1000, concurrentSandboxes: 1000, volumes: 1000 },
      features: { volumes: true },
    });
    const { parts } = platform.api;
    const other = await platform.otherTeam();
    const member = await platform.user(platform.team);
    const stranger = await platform.user(other.team);
    const viewer = await platform.user();
    await addMember(parts, platform.team, viewer.user, 'viewer');
    const developer = await platform.user();
    await addMember(parts, platform.team, developer.user, 'developer');
    const revoked = await createApiKey(parts, platform.team, 'revoked');
    await platform.store.db.deleteFrom('api_keys').where('key_id', '=', revoked.key.keyId).execute();
    parts.credentials.clear();
    const volume = await createVolume(parts, platform.team, 'content');
    const foreignVolume = await createVolume(parts, other.team, 'content');
    const bearer = (token: string) => `Bearer ${token}`;
    return new Scene(
      platform,
      {
        'no key': {},
        'wrong key': { 'x-api-key': `e2b_${'0'.repeat(40)}` },
        'revoked key': { 'x-api-key': revoked.text },
        "other team's key": { 'x-api-key': other.key },
        'access token': { authorization: bearer(member.token) },
        'access token with team': { authorization: bearer(member.token), 'x-team-id': platform.team.teamId },
        "other team's member": { authorization: bearer(stranger.token), 'x-team-id': other.team.teamId },
        'member with a foreign team': { authorization: bearer(member.token), 'x-team-id': other.team.teamId },
        'wrong admin token': { 'x-admin-token': 'wrong', 'x-team-id': platform.team.teamId },
        admin: { 'x-admin-token': adminToken },
        'metrics token': { authorization: bearer(metricsToken) },
        'admin with team': { 'x-admin-token': adminToken, 'x-team-id': platform.team.teamId },
        "volume's token": { authorization: bearer(volumeToken(parts, volume)) },
        "other team's volume token": { authorization: bearer(volumeToken(parts, foreignVolume)) },
        'right key': { 'x-api-key': platform.key },
        "viewer's token with team": { authorization: bearer(viewer.token), 'x-team-id': platform.team.teamId },
      },
      sessionsOf(platform, member.user.userId, {
        stranger: { userId: stranger.user.userId, teamId: other.team.teamId },
        viewerId: viewer.user.userId,
        developerId: developer.user.userId,
      }),
      member.user,
      member.token,
      volume.volumeId,
    );
  }

  /** The ID of a session of the member that may be revoked. */
  async session(): Promise<string> {
    return (await beginSession(this.#platform, this.user.userId)).sessionId;
  }

  async send(caller: Caller, method: string, path: string, body?: unknown): Promise<Answer> {
    const headers = isSessionCaller(caller) ? await this.#sessions[caller]() : this.#headers[caller];
    return call(this.#platform.socketPath, method, path, body, headers);
  }

  /** The same with a session that began long ago and has proven nothing since. */
  async sendUnproven(caller: SessionCaller, method: string, path: string, body?: unknown): Promise<Answer> {
    const headers = await this.#sessions[caller]();
    await this.#platform.store.db.updateTable('sessions').set({ proven_at_us: 0 }).execute();
    return call(this.#platform.socketPath, method, path, body, headers);
  }

  /** A running sandbox of the team. */
  async sandbox(): Promise<string> {
    return (await this.#platform.createSandbox()).sandboxID;
  }

  /** A paused sandbox of the team. */
  async pausedSandbox(): Promise<string> {
    const id = await this.sandbox();
    await this.#platform.call('POST', `/sandboxes/${id}/pause`);
    return id;
  }

  /** A sandbox that was set aside: the store does not know it. */
  async orphanSandbox(): Promise<string> {
    const id = await this.sandbox();
    const { node, store } = this.#platform;
    const target = node.executions().find(({ sandboxId }) => sandboxId === id);
    await store.db.deleteFrom('sandboxes').where('sandbox_id', '=', id).execute();
    if (target) await node.setAside(target, 'a test');
    return id;
  }

  /** An old volume that the store does not know. */
  async orphanVolume(): Promise<string> {
    const id = newUuid();
    await this.#platform.node.volumes.create(id);
    this.#platform.node.volumes.makeOld(id);
    return id;
  }

  /** The name of a private template of the team with a ready build. */
  async template(): Promise<{ alias: string; templateId: string }> {
    const alias = `t${randomName(12)}`;
    const { templateId } = await registerTemplate(this.#platform.api.parts, this.team, {
      ...baseTemplate,
      alias,
      public: false,
    });
    return { alias, templateId };
  }

  /** A registered, waiting build of the team. */
  async build(): Promise<{ templateID: string; buildID: string }> {
    const answer = await this.send('right key', 'POST', '/v3/templates', { name: `b${randomName(12)}` });
    return answer.body as { templateID: string; buildID: string };
  }

  /** A template that waits for its Dockerfile build to be started, as old clients leave it. */
  async dockerBuild(): Promise<{ templateID: string; buildID: string }> {
    const answer = await this.send('right key', 'POST', '/templates', {
      dockerfile: 'FROM scratch',
      alias: `d${randomName(12)}`,
    });
    return answer.body as { templateID: string; buildID: string };
  }

  /** A key of the team that may be revoked. */
  async apiKey(): Promise<string> {
    return (await createApiKey(this.#platform.api.parts, this.team, 'spare')).key.keyId;
  }

  /** An access token of the team's member that may be revoked. */
  async accessToken(): Promise<string> {
    const answer = await this.send('access token', 'POST', '/access-tokens', { name: 'spare' });
    return (answer.body as { id: string }).id;
  }

  /** The ID of a user without team. */
  async newUser(): Promise<string> {
    return (await this.#platform.user()).user.userId;
  }

  /** The ID of a new member of the team. */
  async newMember(): Promise<string> {
    return (await this.#platform.user(this.team)).user.userId;
  }

  /** The ID of an invitation into the team. */
  async invitation(): Promise<string> {
    const { invitation } = await createInvitation(this.#platform.api.parts, this.team, 'viewer', '');
    return invitation.invitationId;
  }

  /** The ID of a secret of the team. */
  async secret(): Promise<string> {
    const answer = await this.send('right key', 'POST', '/secrets', { name: `s${randomName(12)}`, value: 'x' });
    return (answer.body as { secretID: string }).secretID;
  }

  /** The ID of a webhook of the team that receives nothing. */
  async webhook(): Promise<string> {
    const body = {
      name: 'hook',
      url: 'https://receiver.example/',
      events: ['sandbox.lifecycle.killed'],
      enabled: false,
    };
    const { id } = (await this.send('right key', 'POST', '/events/webhooks', body)).body as { id: string };
    this.#webhooks.push(id);
    return id;
  }

  /** A delivery that was given up. */
  async delivery(): Promise<{ webhookId: string; eventId: string }> {
    const webhookId = await this.webhook();
    const { db } = this.#platform.store;
    await this.sandbox();
    const { sequence, event_id } = await db
      .selectFrom('events')
      .select(['sequence', 'event_id'])
      .where('team_id', '=', this.team.teamId)
      .orderBy('sequence', 'desc')
      .limit(1)
      .executeTakeFirstOrThrow();
    await db
      .insertInto('webhook_deliveries')
      .values({ webhook_id: webhookId, sequence, subject: 'x', state: 'dead', claimed: 0, attempts: 1, due_at_us: 0 })
      .execute();
    return { webhookId, eventId: event_id };
  }

  /** The ID of a volume of the team that may be deleted. */
  async volume(): Promise<string> {
    const answer = await this.send('right key', 'POST', '/volumes', { name: `v${randomName(12)}` });
    return (answer.body as { volumeID: string }).volumeID;
  }

  /** The ID of the volume that the tokens are for, with something in it. */
  async contentVolume(): Promise<string> {
    const { volumes } = this.#platform.node;
    await volumes.makeDirectory(this.volumeId, '/there', { uid: 0, gid: 0, mode: 0o777, force: true });
    const { writeId, descriptor } = await volumes.openWrite(this.volumeId, '/file');
    closeSync(descriptor);
    await volumes.keepWrite(writeId);
    return this.volumeId;
  }

  /** A path to upload files of a template to. */
  async uploadPath(): Promise<string> {
    const { templateId } = await this.template();
    const answer = await this.send('right key', 'GET', `/templates/${templateId}/files/${'0'.repeat(64)}`);
    return new URL((answer.body as { url: string }).url).href.replace(/^\w+:\/\/[^/]+/, '');
  }

  /** Ends what a row's cells left running. */
  async tidy(): Promise<void> {
    for (const id of this.#webhooks.splice(0)) await this.send('right key', 'DELETE', `/events/webhooks/${id}`);
    for (const team of [this.team]) {
      await call(this.#platform.socketPath, 'POST', `/admin/teams/${team.teamId}/sandboxes/kill`, undefined, {
        'x-admin-token': adminToken,
      });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#platform[Symbol.asyncDispose]();
  }
}
