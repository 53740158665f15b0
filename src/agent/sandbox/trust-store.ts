import { existsSync } from 'node:fs';
import { readSmallFile, writeSmallFile } from './small-file.ts';

/** Tell programs that bring their own list of authorities where the sandbox's list is. */
const trustVariables: Record<string, string> = {
  NODE_EXTRA_CA_CERTS: '/usr/local/share/ca-certificates/atoll.crt',
  SSL_CERT_FILE: '/etc/ssl/certs/ca-certificates.crt',
  REQUESTS_CA_BUNDLE: '/etc/ssl/certs/ca-certificates.crt',
};

/**
 * Also kept in a file of its own, so that `update-ca-certificates` of Debian and Alpine includes it when it rebuilds
 * the bundle.
 */
const ownFile = '/usr/local/share/ca-certificates/atoll.crt';
/** The bundle of Debian and Alpine; created if missing. */
const mainBundle = '/etc/ssl/certs/ca-certificates.crt';
/** Further bundles: Fedora and its family, openSUSE. Written if they exist. */
const otherBundles = [
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/**
 * Variables for programs that bring their own list of authorities. They are set if the sandbox has further authorities:
 * its own, or those of a template that was built behind a proxy that opens connections. `path`: where those are.
 */
export function trustVariablesFor(caBundle: string | undefined, path = ownFile): Record<string, string> {
  return caBundle || existsSync(path) ? trustVariables : {};
}

const begin = '# Certificates of this sandbox';
const end = '# End of the certificates of this sandbox';

/** A template that was built and changed on many networks keeps the latest of their authorities. */
const certificatesMax = 64;

/** Adds certificates to what the sandbox's programs trust, besides those that its template was built with. */
export function trustCertificates(given: string): void {
  const pem = withThoseBefore(given, readSmallFile(ownFile) ?? '');
  writeWhereOther(ownFile, pem);
  writeWhereOther(mainBundle, withOurs(readSmallFile(mainBundle) ?? '', pem));
  for (const bundle of otherBundles) {
    // Most of them are links to one of the others.
    const text = readSmallFile(bundle);
    if (text !== undefined && !text.includes(pem.trim())) writeSmallFile(bundle, withOurs(text, pem));
  }
}

/** The certificates of two texts (PEM), the given ones first, each once. */
export function withThoseBefore(given: string, before: string): string {
  const all = new Set([...certificatesOf(given), ...certificatesOf(before)]);
  return [...all].slice(0, certificatesMax).join('');
}

const certificateBegin = '-----BEGIN CERTIFICATE-----';
const certificateEnd = '-----END CERTIFICATE-----';

function certificatesOf(pem: string): string[] {
  return pem.split(certificateEnd).flatMap(text => {
    const start = text.lastIndexOf(certificateBegin);
    return start < 0 ? [] : [`${text.slice(start).trim()}\n${certificateEnd}\n`];
  });
}

function withOurs(bundle: string, pem: string): string {
  const start = bundle.indexOf(begin);
  const stop = bundle.indexOf(end);
  const others =
    start >= 0 && stop > start ? bundle.slice(0, start) + bundle.slice(stop + end.length).replace(/^\n/, '') : bundle;
  const before = others.trimEnd();
  return `${before === '' ? '' : `${before}\n`}${begin}\n${pem.trim()}\n${end}\n`;
}

/** A file that already says this is left alone: in a build, touching it would make it part of every layer. */
function writeWhereOther(path: string, text: string): void {
  if (readSmallFile(path) !== text) writeSmallFile(path, text);
}
