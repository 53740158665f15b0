import { createHash, createHmac } from 'node:crypto';
import { AtollError } from '../../base/error.ts';
import type { RegistryCredential } from '../../protocol/build.ts';
import type { Login } from '../../protocol/builder.ts';
import type { Conversation } from '../conversation.ts';
import { guardedFetch, readJson } from './guarded-fetch.ts';

/** Bytes of AWS's answer. */
const answerBytesMax = 64 << 10;
const ecrTarget = 'AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken';

/** The user name and password that a credential stands for. Errors: `invalid` if the cloud refuses it. */
export async function loginOf(credential: RegistryCredential, conversation: Conversation): Promise<Login> {
  if (credential.type === 'registry') return { username: credential.username, password: credential.password };
  // Artifact Registry accepts the service account's key itself.
  if (credential.type === 'gcp') return { username: '_json_key', password: credential.serviceAccountJson };
  const region = credential.awsRegion;
  if (!/^[a-z0-9-]{1,40}$/.test(region))
    throw new AtollError('invalid', 'fromImageRegistry.awsRegion: is not a region');
  const host = `api.ecr.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`;
  const headers = signedHeaders({
    host,
    region,
    service: 'ecr',
    target: ecrTarget,
    body: '{}',
    keyId: credential.awsAccessKeyId,
    secret: credential.awsSecretAccessKey,
    now: new Date(),
  });
  const response = await guardedFetch(`https://${host}/`, { method: 'POST', headers, body: '{}' }, conversation);
  const answer = (await readJson(response, answerBytesMax, host)) as
    | { authorizationData?: { authorizationToken?: string }[]; message?: string }
    | undefined;
  const token = answer?.authorizationData?.[0]?.authorizationToken;
  if (typeof token !== 'string')
    throw new AtollError(
      'invalid',
      'the credential for the image was refused by AWS: ' +
        `${String(answer?.message ?? `status ${response.status}`).slice(0, 500)}`,
    );
  const [username = '', ...password] = Buffer.from(token, 'base64').toString().split(':');
  return { username, password: password.join(':') };
}

/** Headers of a signed request (AWS Signature Version 4), for a POST of JSON to `/`. */
export function signedHeaders(request: {
  host: string;
  region: string;
  service: string;
  target: string;
  body: string;
  keyId: string;
  secret: string;
  now: Date;
}): Record<string, string> {
  const { host, region, service, target, body, keyId, secret } = request;
  const time = request.now.toISOString().replace(/[-:]|\.\d{3}/g, '');
  const day = time.slice(0, 8);
  const headers: Record<string, string> = {
    'content-type': 'application/x-amz-json-1.1',
    host,
    'x-amz-date': time,
    'x-amz-target': target,
  };
  const names = Object.keys(headers).sort();
  const digest = (text: string) => createHash('sha256').update(text).digest('hex');
  const sign = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
  const canonical = [
    'POST',
    '/',
    '',
    ...names.map(name => `${name}:${headers[name]}`),
    '',
    names.join(';'),
    digest(body),
  ].join('\n');
  const scope = `${day}/${region}/${service}/aws4_request`;
  const key = [region, service, 'aws4_request'].reduce<Buffer>(sign, sign(`AWS4${secret}`, day));
  const signature = sign(key, ['AWS4-HMAC-SHA256', time, scope, digest(canonical)].join('\n')).toString('hex');
  return {
    ...headers,
    authorization:
      `AWS4-HMAC-SHA256 Credential=${keyId}/${scope}, SignedHeaders=${names.join(';')}, ` + `Signature=${signature}`,
  };
}
