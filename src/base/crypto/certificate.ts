import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { isIP } from 'node:net';
import { AtollError } from '../error.ts';
import {
  boolean,
  contents,
  contextual,
  integer,
  objectId,
  octets,
  bits,
  sequence,
  set,
  split,
  time,
  utf8,
} from './der.ts';

/** A certificate and its private key, PEM. The key is a secret. */
export type CertificatePair = { readonly certificate: string; readonly key: string };

const ecdsaWithSha256 = () => sequence(objectId('1.2.840.10045.4.3.2'));
const oid = {
  commonName: '2.5.4.3',
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const;
const dayMs = 86_400_000;
/** Clocks of clients may be behind. */
const skewMs = dayMs;

/**
 * A new certificate authority (ECDSA P-256, RFC 5280) that may sign certificates of servers and clients and nothing
 * else.
 */
export function makeAuthority(commonName: string, days: number): CertificatePair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const subject = nameOf(commonName);
  const certificate = certify({
    subject,
    issuer: subject,
    publicKey,
    signer: privateKey,
    days,
    extensions: [
      extension(oid.basicConstraints, true, sequence(boolean(true), integer(0))),
      // keyCertSign and cRLSign.
      extension(oid.keyUsage, true, bits(Buffer.from([0x06]), 1)),
      extension(oid.subjectKeyId, false, octets(keyIdOf(publicKey))),
    ],
  });
  return { certificate, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

/** A new server's certificate for `names` (DNS names, `*.suffix`, IP addresses), signed by `authority`. */
export function issueCertificate(authority: CertificatePair, names: readonly string[], days: number): CertificatePair {
  const { key, publicKey } = newKey();
  return { certificate: certifyKey(authority, publicKey, { names, days, use: 'server' }), key };
}

/** A new private key (ECDSA P-256) and its public half, PEM. */
export function newKey(): { key: string; publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
}

/**
 * A certificate for somebody else's public key (PEM), for servers or for clients alone. Errors: `invalid` for anything
 * but a public key on P-256.
 */
export function certifyKey(
  authority: CertificatePair,
  publicKey: string,
  { names, days, use }: { names: readonly string[]; days: number; use: 'server' | 'client' },
): string {
  const subjectKey = publicKeyOf(publicKey);
  const signer = createPrivateKey(authority.key);
  return certify({
    subject: nameOf(names[0]?.slice(0, 64) ?? use),
    issuer: subjectOf(authority.certificate),
    publicKey: subjectKey,
    signer,
    days,
    extensions: [
      extension(oid.basicConstraints, true, sequence()),
      // digitalSignature.
      extension(oid.keyUsage, true, bits(Buffer.from([0x80]), 7)),
      extension(oid.extendedKeyUsage, false, sequence(objectId(use === 'server' ? oid.serverAuth : oid.clientAuth))),
      extension(oid.subjectAltName, false, sequence(...names.map(alternativeName))),
      extension(oid.subjectKeyId, false, octets(keyIdOf(subjectKey))),
      extension(oid.authorityKeyId, false, sequence(contextual(0, false, keyIdOf(createPublicKey(signer))))),
    ],
  });
}

function publicKeyOf(pem: string): KeyObject {
  try {
    const key = createPublicKey({ key: pem, format: 'pem', type: 'spki' });
    if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key;
  } catch {
    // Said below.
  }
  throw new AtollError('invalid', 'publicKey: must be the PEM of a public key on the curve P-256');
}

function certify(parts: {
  subject: Buffer;
  issuer: Buffer;
  publicKey: KeyObject;
  signer: KeyObject;
  days: number;
  extensions: Buffer[];
}): string {
  // 16 random bytes, the first bit clear: positive, and never the same twice.
  const serial = randomBytes(16);
  serial[0] = ((serial[0] as number) & 0x7f) | 0x40;
  const now = Date.now();
  const body = sequence(
    contextual(0, true, integer(2)),
    integer(serial),
    ecdsaWithSha256(),
    parts.issuer,
    sequence(time(new Date(now - skewMs)), time(new Date(now + parts.days * dayMs))),
    parts.subject,
    parts.publicKey.export({ type: 'spki', format: 'der' }),
    contextual(3, true, sequence(...parts.extensions)),
  );
  const signature = sign('sha256', body, parts.signer);
  return pem('CERTIFICATE', sequence(body, ecdsaWithSha256(), bits(signature, 0)));
}

function nameOf(commonName: string): Buffer {
  return sequence(set(sequence(objectId(oid.commonName), utf8(commonName))));
}

/** The encoded subject of a certificate: the issuer in another one must equal it byte for byte. */
function subjectOf(certificate: string): Buffer {
  const der = Buffer.from(certificate.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  const [body = Buffer.alloc(0)] = split(contents(der));
  // version, serial number, signature algorithm, issuer, validity, subject
  const subject = split(contents(body))[5];
  if (subject === undefined) throw new Error('invariant broken: the authority is no certificate');
  return subject;
}

function extension(id: string, critical: boolean, value: Buffer): Buffer {
  return critical ? sequence(objectId(id), boolean(true), octets(value)) : sequence(objectId(id), octets(value));
}

function alternativeName(name: string): Buffer {
  const family = isIP(name);
  if (family === 0) return contextual(2, false, Buffer.from(name, 'ascii'));
  return contextual(7, false, family === 4 ? Buffer.from(name.split('.').map(Number)) : ipv6Bytes(name));
}

function ipv6Bytes(address: string): Buffer {
  // The URL parser understands every notation and answers groups of hexadecimal digits.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':').map(group => Number.parseInt(group, 16)));
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  const all = [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
  return Buffer.from(all.flatMap(group => [group >> 8, group & 0xff]));
}

function keyIdOf(publicKey: KeyObject): Buffer {
  return createHash('sha1')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest();
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
